//===- plan_rows.cpp - The rows of a plan, for people ---------------------===//

#include "tools/report/plan_rows.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/integers.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::at;
using planner::LedgerEntry;
using planner::LedgerPhase;

namespace {

struct Tally {
  const LedgerEntry *entry;
  std::int64_t count; ///< per layer and micro-batch
};

void add(std::vector<Tally> &tallies, const Tally &added) {
  for (Tally &tally : tallies)
    if (tally.entry->kind == added.entry->kind &&
        tally.entry->axis == added.entry->axis &&
        tally.entry->bytes == added.entry->bytes) {
      tally.count += added.count;
      return;
    }
  tallies.push_back(added);
}

Tally tallyOf(const LedgerEntry &entry, const RunFact &run) {
  return {&entry, std::max<std::int64_t>(entry.perMicroBatch / run.copies, 1)};
}

std::string textOf(const std::vector<Tally> &tallies,
                   const planner::Mesh &mesh) {
  std::string text;
  for (const Tally &tally : tallies) {
    text += text.empty() ? "" : ", ";
    if (tally.count > 1)
      text += std::to_string(tally.count) + ' ';
    text += nameOf(tally.entry->kind);
    text += ' ' + mesh.axes[at(tally.entry->axis)].name + ' ' +
            bytesText(tally.entry->bytes);
  }
  return text;
}

// Returns "attn.q" for "h.*.attn.q".
std::string shortName(const std::string &label) {
  std::size_t star = label.find("*.");
  return star == label.npos ? label : label.substr(star + 2);
}

// Returns whether two operators are of the same module, such as "attn.q" and
// "attn.k".
bool shareModule(const OpFact &one, const OpFact &other) {
  const std::string a = shortName(one.label), b = shortName(other.label);
  std::size_t dot = a.rfind('.');
  return dot != a.npos && b.rfind('.') == dot &&
         a.compare(0, dot, b, 0, dot) == 0;
}

// Returns the index of the operator whose name is the longest prefix of
// `cause`. The last operator owns the gradient that the next segment sends
// back.
int ownerOf(const std::string &cause, const std::vector<const OpFact *> &ops) {
  if (cause == "carried.grad")
    return static_cast<int>(ops.size()) - 1;
  int owner = -1;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::string &label = ops[i]->label;
    bool owns = cause.compare(0, label.size(), label) == 0 &&
                (cause.size() == label.size() || cause[label.size()] == '.' ||
                 cause[label.size()] == '#');
    if (owns && label.size() > longest) {
      owner = static_cast<int>(i);
      longest = label.size();
    }
  }
  return owner;
}

// Appends `name` without the prefix that it shares with `last`.
void appendName(std::string &names, std::string &last,
                const std::string &name) {
  std::size_t dot = name.rfind('.');
  bool shares = dot != name.npos && dot < last.size() &&
                last.compare(0, dot + 1, name, 0, dot + 1) == 0;
  if (!names.empty())
    names += ", ";
  names += shares ? name.substr(dot + 1) : name;
  last = name;
}

class RowBuilder {
public:
  RowBuilder(const OpFact &op, RowDetail theDetail)
      : detail(theDetail), first(op), last(&op) {
    row.strategy = op.strategy;
    take(op);
  }

  bool accepts(const OpFact &op) const {
    constexpr int kMostNames = 6;
    if (names == kMostNames || op.strategy != row.strategy)
      return false;
    if (detail == RowDetail::all)
      return op.shape == first.shape && forward.empty();
    constexpr std::size_t kMostShapes = 2;
    return (forward.empty() || shareModule(*last, op)) &&
           (shapes.size() < kMostShapes ||
            std::ranges::find(shapes, op.shape) != shapes.end());
  }

  void take(const OpFact &op) {
    appendName(row.operators, lastName, shortName(op.label));
    if (std::ranges::find(shapes, op.shape) == shapes.end())
      shapes.push_back(op.shape);
    last = &op;
    ++names;
  }

  void take(const std::vector<Tally> &afterForward,
            const std::vector<Tally> &afterBackward) {
    for (const Tally &tally : afterForward)
      add(forward, tally);
    for (const Tally &tally : afterBackward)
      add(backward, tally);
  }

  PlanRow finish(const planner::Mesh &mesh) {
    for (const std::vector<std::int64_t> &shape : shapes)
      row.shape += (row.shape.empty() ? "" : ", ") + shapeText(shape);
    row.forward = textOf(forward, mesh);
    row.backward = textOf(backward, mesh);
    return std::move(row);
  }

private:
  RowDetail detail;
  const OpFact &first;
  const OpFact *last;
  int names = 0;
  std::string lastName;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<Tally> forward, backward;
  PlanRow row;
};

std::vector<PlanRow> rowsOf(const RunFact &run, const planner::Mesh &mesh,
                            RowDetail detail) {
  std::vector<const OpFact *> ops;
  for (const OpFact &op : run.ops)
    if (op.phase == planner::Phase::forward)
      ops.push_back(&op);
  // The last entry has the collectives of values that enter the segment.
  std::vector<std::vector<Tally>> forward(ops.size() + 1), backward(forward);
  for (const LedgerEntry &entry : run.collectives) {
    if (entry.phase == LedgerPhase::update)
      continue;
    int owner = ownerOf(entry.cause, ops);
    add((entry.phase == LedgerPhase::forward
             ? forward
             : backward)[owner < 0 ? ops.size() : at(owner)],
        tallyOf(entry, run));
  }
  std::vector<PlanRow> rows;
  if (!forward.back().empty() || !backward.back().empty())
    rows.push_back({"(carried)", "", "", textOf(forward.back(), mesh),
                    textOf(backward.back(), mesh)});
  for (std::size_t i = 0; i < ops.size();) {
    RowBuilder row(*ops[i], detail);
    row.take(forward[i], backward[i]);
    for (++i; i < ops.size() && row.accepts(*ops[i]); ++i) {
      row.take(*ops[i]);
      row.take(forward[i], backward[i]);
    }
    rows.push_back(row.finish(mesh));
  }
  return rows;
}

PhaseTraffic trafficOf(const RunFact &run, LedgerPhase phase,
                       const planner::Mesh &mesh) {
  PhaseTraffic traffic;
  traffic.phase = phase;
  std::vector<Tally> tallies;
  for (const LedgerEntry &entry : run.collectives)
    if (entry.phase == phase) {
      add(tallies, tallyOf(entry, run));
      traffic.time += entry.time * (static_cast<double>(entry.perMicroBatch) /
                                    static_cast<double>(run.copies));
    }
  traffic.collectives = textOf(tallies, mesh);
  return traffic;
}

PlanBlock blockOf(const RunFact &run, const planner::Mesh &mesh,
                  RowDetail detail) {
  PlanBlock block;
  block.segment = run.segment;
  if (run.isLayer)
    block.layers.emplace_back(run.first, run.copies);
  block.rows = rowsOf(run, mesh, detail);
  for (LedgerPhase phase : {LedgerPhase::forward, LedgerPhase::backward})
    block.traffic.push_back(trafficOf(run, phase, mesh));
  return block;
}

bool looksLike(const PlanBlock &a, const PlanBlock &b) {
  return a.segment == b.segment && a.rows == b.rows &&
         std::ranges::equal(a.traffic, b.traffic, {},
                            &PhaseTraffic::collectives,
                            &PhaseTraffic::collectives);
}

} // namespace

std::vector<PlanBlock> blocksOf(const PlanFacts &facts, RowDetail detail) {
  std::vector<PlanBlock> blocks;
  for (const RunFact &run : facts.runs) {
    PlanBlock block = blockOf(run, facts.setting.mesh, detail);
    auto known = std::ranges::find_if(blocks, [&](const PlanBlock &other) {
      return looksLike(other, block);
    });
    if (known == blocks.end()) {
      blocks.push_back(std::move(block));
      continue;
    }
    for (const auto &[first, count] : block.layers)
      if (auto &last = known->layers.back(); last.first + last.second == first)
        last.second += count;
      else
        known->layers.emplace_back(first, count);
  }
  return blocks;
}

std::string nameOf(const PlanBlock &block) {
  if (block.layers.empty())
    return block.segment;
  constexpr std::size_t kMostRuns = 3;
  const std::size_t shown =
      block.layers.size() > kMostRuns ? kMostRuns - 1 : block.layers.size();
  std::string name = block.segment.substr(0, block.segment.find('_')) + '.';
  for (std::size_t i = 0; i < shown; ++i) {
    const auto &[first, count] = block.layers[i];
    name += (i > 0 ? ", " : "") + std::to_string(first);
    if (count > 1)
      name += ".." + std::to_string(first + count - 1);
  }
  if (shown < block.layers.size()) {
    int layers = 0;
    for (const auto &[first, count] : block.layers)
      layers += count;
    name += fmt::format(", ... ({} layers)", layers);
  }
  return name;
}

} // namespace mtplan::tools
