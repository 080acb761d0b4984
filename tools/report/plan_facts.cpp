//===- plan_facts.cpp - Facts of a plan, for all reports ------------------===//

#include "tools/report/plan_facts.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/integers.h"
#include "planner/search/segment/reshard_prices.h"
#include "planner/search/solve_candidate.h"
#include "planner/search/space/segment_runs.h"
#include "tools/driver/plan_text.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::at;
using planner::LedgerEntry;
using planner::LedgerPhase;
using planner::PlannedCandidate;
using planner::ScheduleKind;

namespace {

RunFact runOf(const PlanFacts &facts, const planner::SegmentPlan &plan) {
  const planner::SegmentGraph &segment = facts.graph.segments[at(plan.segment)];
  const planner::Mesh &mesh = facts.setting.mesh;
  RunFact run{segment.name, plan.first, plan.count, isLayer(segment),
              {},           {},         {}};
  for (std::size_t o = 0; o < segment.ops.size(); ++o) {
    const planner::Op &op = segment.ops[o];
    planner::Layout layout = planner::resultLayout(op, plan.strategies[o], 0);
    run.ops.push_back(
        {op.name, op.kind, planner::describe(op, plan.strategies[o], mesh),
         op.phase,
         planner::localShape(segment.tensors[at(op.results[0].tensor)].shape,
                             layout, mesh),
         planner::toString(layout, mesh)});
  }
  for (std::size_t p = 0; p < plan.parameters.size(); ++p)
    if (plan.parameters[p]) {
      const planner::Parameter &parameter = facts.graph.parameters[p];
      const planner::ParameterState &state = *plan.parameters[p];
      run.parameters.push_back(
          {parameter.name,
           planner::toString(state.stored, mesh),
           planner::localShape(parameter.shape, state.stored, mesh),
           parameter.shape,
           {planner::localBytes(parameter.shape, state.stored,
                                parameter.elementBytes, mesh)},
           state.reduceOncePerStep});
    }
  run.collectives = planner::ledgerOf(facts.graph, {plan}, facts.setting);
  return run;
}

// Returns whether a memory-bound forward operator is split over the sequence.
bool usesSequenceSplit(const PlanFacts &facts, const PlannedCandidate &plan) {
  for (const planner::SegmentPlan &run : plan.plans()) {
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      if (segment.ops[o].opClass == planner::OpClass::memory &&
          segment.ops[o].phase == planner::Phase::forward &&
          std::string_view("sequence") ==
              planner::wordOf(segment.ops[o], run.strategies[o],
                              planner::tensorAxisOf(facts.setting.mesh)))
        return true;
  }
  return false;
}

// Returns the collectives of all stages, and counts equal ones. Each stage is
// listed separately, because a shared weight is stored on each of its stages.
std::vector<planner::LedgerEntry>
collectivesOf(const PlanFacts &facts, const PlannedCandidate &candidate) {
  std::vector<planner::LedgerEntry> all;
  for (int stage = 0; stage < candidate.config.pp; ++stage) {
    std::vector<planner::SegmentPlan> plans;
    for (std::size_t part = 0; part < candidate.parts.size(); ++part)
      if (static_cast<int>(part) % candidate.config.pp == stage)
        plans.insert(plans.end(), candidate.parts[part].begin(),
                     candidate.parts[part].end());
    for (planner::LedgerEntry &entry :
         planner::ledgerOf(facts.graph, plans, facts.setting)) {
      auto known = std::ranges::find_if(all, [&](const auto &other) {
        return entry.kind == other.kind && entry.axis == other.axis &&
               entry.bytes == other.bytes && entry.phase == other.phase &&
               entry.cause == other.cause && entry.segment == other.segment;
      });
      if (known == all.end()) {
        all.push_back(std::move(entry));
        continue;
      }
      known->perMicroBatch += entry.perMicroBatch;
      known->perStep += entry.perStep;
    }
  }
  std::ranges::stable_sort(all, {}, &planner::LedgerEntry::phase);
  return all;
}

planner::Bytes bytesOf(const PlanFacts &facts, const planner::SegmentPlan &run,
                       const std::vector<int> &tensors,
                       const std::vector<planner::Layout> &layouts) {
  const planner::SegmentGraph &segment = facts.graph.segments[at(run.segment)];
  planner::Bytes bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const planner::Tensor &tensor = segment.tensors[at(tensors[i])];
    bytes += planner::Bytes{planner::localBytes(
        tensor.shape, layouts[i], tensor.elementBytes, facts.setting.mesh)};
  }
  return bytes;
}

/// Names a term that the published runs of docs/accuracy/throughput.csv lack.
/// The runs have 1f1b and interleaved pipelines, tensor and context ranks, ZeRO
/// 1 and 3, and all kinds of recomputation; none has experts, offloading, tiles
/// or another schedule.
struct Gap {
  const char *name, *without;
  /// The seconds of the step that the term adds; null if it adds none.
  planner::Seconds planner::StepTime::*time;
  /// The schedule that no published run uses; it is compared with 1f1b.
  ScheduleKind schedule;
};
constexpr Gap kGaps[] = {
    {"the zero-bubble schedule", "as 1f1b", nullptr, ScheduleKind::zeroBubble},
    {"the gpipe schedule", "as 1f1b", nullptr, ScheduleKind::gpipe},
    {"the exchange between experts",
     "without it",
     &planner::StepTime::exchange,
     {}},
    {"offload to the host", "without it", &planner::StepTime::host, {}}};

planner::Seconds stepOf(const Problem &problem, const PlannedCandidate &plan,
                        const planner::Parallelism &config) {
  return planner::priceGiven(
             planner::withBatch(problem.graph, config.microBatch * config.dp),
             problem.options, problem.machine, config, plan.parts)
      .time.step;
}

} // namespace

PlanFacts factsOf(const Problem &problem, const PlannedCandidate &candidate) {
  PlanFacts facts;
  const planner::SearchOptions &options = problem.options;
  facts.setting =
      planner::settingOf(options, problem.machine, candidate.config);
  facts.graph = planner::withBatch(problem.graph, candidate.config.microBatch *
                                                      candidate.config.dp);
  for (const planner::SegmentPlan &plan : candidate.plans())
    facts.runs.push_back(runOf(facts, plan));
  facts.collectives = collectivesOf(facts, candidate);
  double step = candidate.time.step.value;
  facts.tokensPerSecond = static_cast<double>(options.globalBatch) *
                          static_cast<double>(facts.graph.sequence) / step;
  facts.modelRate = {facts.graph.modelFlops.value *
                     static_cast<double>(candidate.config.microBatches()) /
                     step / options.devices};
  if (auto peak = problem.machine.device.peak(options.precision))
    facts.mfu = facts.modelRate / *peak;
  facts.sequenceParallel = usesSequenceSplit(facts, candidate);
  return facts;
}

int kindsOfLayers(const PlanFacts &facts) {
  std::vector<const RunFact *> kinds;
  for (const RunFact &run : facts.runs)
    if (run.isLayer && std::ranges::none_of(kinds, [&](const RunFact *kind) {
          return kind->ops == run.ops && kind->parameters == run.parameters;
        }))
      kinds.push_back(&run);
  return static_cast<int>(kinds.size());
}

std::string tiledText(const PlanFacts &facts) {
  std::vector<int> tiles = tilesOfParameters(facts.graph, facts.setting);
  std::string text;
  for (std::size_t p = 0; p < tiles.size(); ++p)
    if (tiles[p] > 1)
      text += fmt::format("{}{} in {}", text.empty() ? "" : ", ",
                          facts.graph.parameters[p].name, tiles[p]);
  return text;
}

int nodesOf(const Problem &problem) {
  int perNode = problem.machine.devicesPerNode;
  return (problem.options.devices + perNode - 1) / perNode;
}

std::string configText(const planner::Parallelism &config) {
  std::string choices = choicesText(config);
  return meshText(config) + ", " + batchText(config) +
         (choices.empty() ? "" : ", " + choices);
}

std::vector<StageFact> stagesOf(const Problem &problem, const PlanFacts &facts,
                                const PlannedCandidate &plan) {
  const planner::StepProblem step =
      planner::stepProblemOf(facts.graph, plan.parts, facts.setting,
                             plan.config, problem.options.overlaps);
  std::vector<StageFact> stages;
  for (planner::MemoryUse &memory : planner::memoryByStage(
           facts.graph, plan.parts, facts.setting, plan.config)) {
    const planner::StageTimes &times = step.stages[stages.size()];
    planner::Seconds busy = times.update;
    for (const planner::ChunkTimes &chunk : times.chunks)
      for (const planner::SliceTimes &slice : chunk.slices)
        busy += (slice.forward + slice.backward) *
                static_cast<double>(slice.count * step.shape.microBatches);
    stages.push_back({std::move(memory), busy});
  }
  return stages;
}

std::vector<Send> sendsOf(const Problem &problem, const PlanFacts &facts,
                          const planner::PlannedCandidate &plan) {
  std::vector<Send> sends;
  const planner::Parallelism &config = plan.config;
  if (config.pp == 1)
    return sends;
  planner::StepProblem step = planner::stepProblemOf(
      facts.graph, plan.parts, facts.setting, config, problem.options.overlaps);
  auto chunkOf = [&](int part) -> const planner::ChunkTimes & {
    return step.stages[at(part % config.pp)].chunks[at(part / config.pp)];
  };
  auto parts = static_cast<int>(plan.parts.size());
  for (int part = 0; part + 1 < parts; ++part) {
    const planner::SegmentPlan &run = plan.parts[at(part)].back();
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    sends.push_back({part, part + 1, planner::LedgerPhase::forward,
                     segment.name,
                     bytesOf(facts, run, segment.carriedOut, run.carriedOut),
                     chunkOf(part).sendForward});
  }
  for (int part = parts - 1; part > 0; --part) {
    const planner::SegmentPlan &run = plan.parts[at(part)].front();
    const planner::SegmentGraph &segment =
        facts.graph.segments[at(run.segment)];
    sends.push_back({part, part - 1, planner::LedgerPhase::backward,
                     segment.name,
                     bytesOf(facts, run, segment.gradientOut, run.gradientOut),
                     chunkOf(part).sendBackward});
  }
  return sends;
}

Unvalidated unvalidatedOf(const Problem &problem,
                          const PlannedCandidate &plan) {
  Unvalidated found;
  found.step = plan.time.step;
  for (const Gap &gap : kGaps) {
    planner::Seconds less;
    if (gap.time) {
      less = plan.time.*gap.time;
      if (less == planner::Seconds{})
        continue;
    } else {
      if (plan.config.pp == 1 || plan.config.schedule != gap.schedule)
        continue;
      planner::Parallelism config = plan.config;
      config.schedule = ScheduleKind::oneForwardOneBackward;
      less = plan.time.step - stepOf(problem, plan, config);
    }
    found.terms.push_back({gap.name, gap.without, plan.time.step - less});
    found.step = found.step - less;
  }
  if (plan.config.tiles > 1) {
    planner::Parallelism config = plan.config;
    config.tiles = 1;
    planner::Seconds step = stepOf(problem, plan, config);
    found.terms.push_back({"weights in tiles", "at once", step});
    found.step = found.step - (plan.time.step - step);
  }
  return found;
}

namespace {

// Returns what makes the faster plan less simple than the chosen one, as a
// predicate.
std::string complicationOf(const planner::FasterPlan &faster) {
  const planner::Simplicity &its = faster.simplicity, &ours = faster.chosen;
  if (its.kinds != ours.kinds)
    return fmt::format("has {} kinds of layers", its.kinds);
  if (its.fullness != ours.fullness)
    return "leaves less memory free";
  if (its.unusual != ours.unusual)
    return fmt::format("has {} unusual split{}", its.unusual,
                       its.unusual == 1 ? "" : "s");
  return "combines more techniques";
}

} // namespace

std::string claimText(const PlanOutcome &outcome) {
  if (!outcome.claim.empty())
    return outcome.claim;
  const planner::SearchResult &result = outcome.result;
  std::string claim = "Optimal";
  if (!result.optimal)
    claim = fmt::format("Best found, at most {:.2g} % above the optimum,",
                        100 * result.gap());
  if (const auto &faster = result.faster)
    claim = fmt::format(
        "Simpler and {:.2g} % slower than the fastest plan, which {} and is {}",
        100 * (outcome.best()->time.step / faster->step - 1),
        complicationOf(*faster),
        result.optimal ? "optimal"
                       : fmt::format("at most {:.2g} % above the optimum,",
                                     100 * result.gap()));
  std::int64_t left = result.unreached;
  return fmt::format("{} over {} candidate{}, {} of them excluded by bounds{}",
                     claim, result.candidates,
                     result.candidates == 1 ? "" : "s", result.pruned,
                     left > 0 ? fmt::format(", {} not reached", left) : "");
}

namespace {

/// Counts equal collectives.
struct Tally {
  const LedgerEntry *entry;
  std::int64_t count; ///< number per layer and micro-batch
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
  // The last entry has the collectives of values that enter and leave the
  // segment.
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
