//===- plan_rows.cpp - A plan as rows of a table --------------------------===//

#include "tools/report/plan_rows.h"

#include <algorithm>

#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::LedgerEntry;
using planner::LedgerPhase;

namespace {

/// Counts equal collectives.
struct Tally {
  const LedgerEntry *entry;
  std::int64_t count; ///< per layer and micro-batch
};

void add(std::vector<Tally> &tallies, const LedgerEntry &entry, int copies) {
  std::int64_t count = std::max<std::int64_t>(entry.perMicroBatch / copies, 1);
  for (Tally &tally : tallies)
    if (tally.entry->kind == entry.kind && tally.entry->axis == entry.axis &&
        tally.entry->bytes == entry.bytes) {
      tally.count += count;
      return;
    }
  tallies.push_back({&entry, count});
}

std::string textOf(const std::vector<Tally> &tallies,
                   const planner::Mesh &mesh) {
  std::string text;
  for (const Tally &tally : tallies) {
    text += text.empty() ? "" : ", ";
    if (tally.count > 1)
      text += std::to_string(tally.count) + ' ';
    text += nameOf(tally.entry->kind);
    text += ' ' + mesh.axes[static_cast<std::size_t>(tally.entry->axis)].name +
            ' ' + bytesText(tally.entry->bytes);
  }
  return text;
}

// Returns "attn.q" for "h.*.attn.q".
std::string shortName(const std::string &label) {
  std::size_t star = label.find("*.");
  return star == label.npos ? label : label.substr(star + 2);
}

// Returns the operator whose name is the longest prefix of `cause`.
int ownerOf(const std::string &cause, const std::vector<const OpFact *> &ops) {
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

// Appends a name, without the prefix it shares with the previous one.
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

} // namespace

std::vector<PlanRow> rowsOf(const RunFact &run, const planner::Mesh &mesh) {
  std::vector<const OpFact *> ops;
  for (const OpFact &op : run.ops)
    if (op.phase == planner::Phase::forward)
      ops.push_back(&op);
  // The last entry is for values that enter and leave the segment.
  std::vector<std::vector<Tally>> forward(ops.size() + 1), backward(forward);
  for (const LedgerEntry &entry : run.collectives) {
    if (entry.phase == LedgerPhase::update)
      continue;
    int owner = ownerOf(entry.cause, ops);
    std::size_t row = owner < 0 ? ops.size() : static_cast<std::size_t>(owner);
    add((entry.phase == LedgerPhase::forward ? forward : backward)[row], entry,
        run.copies);
  }

  std::vector<PlanRow> rows;
  if (!forward.back().empty() || !backward.back().empty())
    rows.push_back({"(carried)", "", "", textOf(forward.back(), mesh),
                    textOf(backward.back(), mesh)});
  for (std::size_t i = 0; i < ops.size();) {
    PlanRow row{"", ops[i]->strategy, shapeText(ops[i]->shape), "", ""};
    std::vector<Tally> back;
    std::string last;
    std::size_t end = i;
    constexpr std::size_t kMostNames = 5;
    while (end < ops.size() && end - i < kMostNames &&
           ops[end]->strategy == row.strategy &&
           ops[end]->shape == ops[i]->shape &&
           (end == i || forward[end - 1].empty())) {
      appendName(row.operators, last, shortName(ops[end]->label));
      for (const Tally &tally : backward[end])
        for (std::int64_t n = 0; n < tally.count; ++n)
          add(back, *tally.entry,
              static_cast<int>(
                  std::max<std::int64_t>(tally.entry->perMicroBatch, 1)));
      ++end;
    }
    row.forward = textOf(forward[end - 1], mesh);
    row.backward = textOf(back, mesh);
    rows.push_back(std::move(row));
    i = end;
  }
  return rows;
}

std::string nameOf(const RunFact &run) {
  bool numbered = std::ranges::any_of(run.ops, [](const OpFact &op) {
    return op.label.find('*') != op.label.npos;
  });
  if (!numbered)
    return run.segment;
  std::string name = run.segment.substr(0, run.segment.find('_'));
  name += '.' + std::to_string(run.first);
  if (run.copies > 1)
    name += ".." + std::to_string(run.first + run.copies - 1);
  return name;
}

std::string summaryOf(const RunFact &run, LedgerPhase phase,
                      const planner::Mesh &mesh, planner::Seconds &time) {
  std::vector<Tally> tallies;
  time = {};
  for (const LedgerEntry &entry : run.collectives)
    if (entry.phase == phase) {
      add(tallies, entry, run.copies);
      time += entry.time * (static_cast<double>(entry.perMicroBatch) /
                            static_cast<double>(run.copies));
    }
  return textOf(tallies, mesh);
}

namespace {

// Returns whether two runs follow each other and print the same rows.
bool looksLike(const RunFact &a, const RunFact &b, const planner::Mesh &mesh) {
  if (a.segment != b.segment || a.first + a.copies != b.first ||
      rowsOf(a, mesh) != rowsOf(b, mesh))
    return false;
  planner::Seconds ignored;
  for (LedgerPhase phase : {LedgerPhase::forward, LedgerPhase::backward})
    if (summaryOf(a, phase, mesh, ignored) !=
        summaryOf(b, phase, mesh, ignored))
      return false;
  return true;
}

} // namespace

std::vector<RunFact> runsShown(const PlanFacts &facts) {
  std::vector<RunFact> shown;
  for (const RunFact &run : facts.runs) {
    if (shown.empty() || !looksLike(shown.back(), run, facts.setting.mesh)) {
      shown.push_back(run);
      continue;
    }
    RunFact &joined = shown.back();
    int copies = joined.copies + run.copies;
    for (LedgerEntry &entry : joined.collectives)
      entry.perMicroBatch = entry.perMicroBatch / joined.copies * copies;
    joined.copies = copies;
  }
  return shown;
}

} // namespace mtplan::tools
