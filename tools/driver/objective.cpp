//===- objective.cpp - Searches for other objectives ----------------------===//

#include "tools/driver/objective.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "planner/integers.h"
#include "tools/driver/limits.h"
#include "tools/driver/plan_text.h"
#include "tools/text/pin_text.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Bytes;

namespace {

constexpr int kMostGpus = 16384; ///< limit of the search unless --gpus sets one
constexpr std::int64_t kMostStages = 64;

void searchFewestGpus(const PlanRequest &request, PlanOutcome &outcome) {
  Problem &problem = *outcome.problem;
  const auto peak = problem.machine.device.peak(problem.options.precision);
  int least = 1;
  // On fewer than `least` GPUs, matrix products at peak rate alone exceed the
  // requested step time.
  if (request.maxStepTime && peak) {
    const double flops = planner::withBatch(problem.graph, 1).modelFlops.value *
                         static_cast<double>(problem.options.globalBatch);
    const double gpus =
        std::ceil(flops / (peak->value * request.maxStepTime->value) - 1e-9);
    least = static_cast<int>(std::min(gpus, kMostGpus + 1.0));
  }
  const auto note = [&](int gpus, const std::string &why) {
    outcome.attempts.push_back({std::to_string(gpus), why});
  };
  const int most = request.gpus ? static_cast<int>(*request.gpus) : kMostGpus;
  int skipped = 0;
  for (int gpus : gpuCounts(problem.machine, most)) {
    if (gpus < least) {
      skipped = gpus;
      continue;
    }
    if (skipped > 0)
      note(skipped, fmt::format("and fewer: the products alone take longer at "
                                "{:.0f} TFLOP/s each",
                                peak ? peak->value / 1e12 : 0.0));
    skipped = 0;
    problem.options.devices = gpus;
    std::vector<std::string> illegal;
    checkLimits(problem.options, &problem.graph, illegal);
    if (!illegal.empty()) {
      note(gpus, illegal.front());
      continue;
    }
    searchProblem(outcome);
    if (outcome.best())
      return;
    note(gpus, failureOf(outcome));
  }
  if (skipped > 0)
    note(skipped, "and fewer: the products alone take longer");
}

// Bisects the memory limit, and keeps the fastest plan under the smallest limit
// for which a plan is found.
void searchLeastMemory(PlanOutcome &outcome) {
  constexpr double kClose = 16.0 * 1024 * 1024;
  Problem &problem = *outcome.problem; // remains valid when its owner changes
  const Bytes whole = problem.machine.device.memory;
  searchProblem(outcome);
  if (!outcome.best())
    return;
  Bytes fits = outcome.best()->memory.total();
  Bytes fails = problem.machine.device.reserved;
  problem.options.stop = [] { return true; };
  while ((fits - fails).value > kClose) {
    const Bytes between = (fits + fails) / 2.0;
    PlanOutcome tried;
    tried.problem = std::move(outcome.problem);
    problem.machine.device.memory = between;
    searchProblem(tried);
    if (tried.best()) {
      fits = tried.best()->memory.total();
    } else {
      fails = between;
      outcome.attempts.push_back(
          {preciseGibText(between), "no plan was found"});
    }
    outcome.problem = std::move(tried.problem);
  }
  problem.options.stop = nullptr;
  problem.machine.device.memory = fits * (1 + 1e-12);
  searchProblem(outcome);
  problem.machine.device.memory = whole;
  for (planner::PlannedCandidate &plan : outcome.result.plans)
    plan.memory.limit = whole;
}

struct Change {
  std::string flags;
  std::function<void(PlanRequest &)> apply;
};

/// Lists changes of one kind, the mildest first. The remedy is the first change
/// under which a plan fits.
using Changes = std::vector<Change>;

template <typename Value>
Value largest(const planner::Choices<Value> &choices, Value all) {
  return choices.only.empty() ? all : *std::ranges::max_element(choices.only);
}

bool has(const std::vector<planner::Split> &splits, planner::Split split) {
  return std::ranges::find(splits, split) != splits.end();
}

Changes oneMoreSplit(const PlanRequest &request) {
  Changes changes;
  for (planner::Split split : allSplits()) {
    if (has(request.splits, split))
      continue;
    std::vector<planner::Split> splits = request.splits;
    splits.push_back(split);
    changes.push_back(
        {"--splits " + splitsText(splits),
         [splits](PlanRequest &changed) { changed.splits = splits; }});
  }
  return changes;
}

// Returns, for each forward operator that is not memory-bound, a pin that
// replicates the operator. If such a pin makes a plan legal, the operator has
// no other legal strategy.
Changes repeatedOperator(const Problem &problem) {
  Changes changes;
  for (const planner::SegmentGraph &segment : problem.graph.segments)
    for (const planner::Op &op : segment.ops) {
      if (op.phase == planner::Phase::backward ||
          op.opClass == planner::OpClass::memory)
        continue;
      const std::string pin = op.name + "=replicated";
      changes.push_back(
          {op.name + " has no legal strategy; --pin '" + pin + '\'',
           [pin](PlanRequest &changed) {
             std::vector<std::string> errors;
             changed.pins = parsePins({pin}, errors);
           }});
    }
  return changes;
}

Changes smallerMicroBatch(const PlanRequest &request) {
  Changes changes;
  if (!request.microBatch)
    return changes;
  for (std::int64_t batch :
       planner::divisorsOf(std::max<std::int64_t>(*request.microBatch, 1)))
    if (batch < *request.microBatch)
      changes.push_back(
          {fmt::format("--micro-batch {}", batch),
           [batch](PlanRequest &changed) { changed.microBatch = batch; }});
  std::ranges::reverse(changes);
  return changes;
}

Changes higherZeroStage(const PlanRequest &request) {
  Changes changes;
  for (int stage = largest(request.zeroStage, 3) + 1; stage <= 3; ++stage)
    changes.push_back(
        {fmt::format("--zero {}", stage),
         [stage](PlanRequest &changed) { changed.zeroStage.only = {stage}; }});
  return changes;
}

Changes moreRecomputation(const PlanRequest &request) {
  using planner::Recompute;
  Changes changes;
  for (Recompute recompute : {Recompute::selective, Recompute::full})
    if (recompute > largest(request.recompute, Recompute::full))
      changes.push_back({fmt::format("--recompute {}", nameOf(recompute)),
                         [recompute](PlanRequest &changed) {
                           changed.recompute.only = {recompute};
                         }});
  return changes;
}

Changes offloading(const PlanRequest &request, const Problem &problem) {
  using planner::Offload;
  if (!problem.machine.host || request.offload.allows(Offload::optimizer))
    return {};
  return {{"--offload optimizer", [](PlanRequest &changed) {
             changed.offload.only = {Offload::optimizer};
           }}};
}

Changes tiling(const PlanRequest &request) {
  if (!request.tiles.allows(1) || request.tiles.only.empty())
    return {};
  return {{"--zero 3 --tiles any", [](PlanRequest &changed) {
             changed.zeroStage.only = {3};
             changed.tiles.only.clear();
           }}};
}

// Adds the change that raises a degree to `degree`, which is its present value
// times `times`. A fixed dp is divided by `times`; if the quotient is not
// whole, nothing is added.
void addDegree(Changes &changes, const PlanRequest &request, std::int64_t times,
               const char *flag, std::int64_t degree,
               const std::function<void(PlanRequest &)> &apply) {
  std::string flags = fmt::format("{} {}", flag, degree);
  if (!request.dp) {
    changes.push_back({flags, apply});
  } else if (*request.dp % times == 0) {
    const std::int64_t dp = *request.dp / times;
    changes.push_back({flags + fmt::format(" --dp {}", dp),
                       [apply, dp](PlanRequest &changed) {
                         apply(changed);
                         changed.dp = dp;
                       }});
  }
}

Changes moreStages(const PlanRequest &request, const Problem &problem) {
  Changes changes;
  for (std::int64_t pp : planner::divisorsOf(problem.options.devices))
    if (pp > largest(request.pp, problem.options.devices) &&
        pp <= problem.model.layers && pp <= kMostStages)
      addDegree(changes, request, pp / largest(request.pp, 1), "--pp", pp,
                [pp](PlanRequest &changed) {
                  changed.pp.only = {static_cast<int>(pp)};
                });
  return changes;
}

Changes moreTensorRanks(const PlanRequest &request, const Problem &problem) {
  Changes changes;
  if (!request.tp)
    return changes;
  for (std::int64_t tp : planner::divisorsOf(problem.options.devices))
    if (tp > *request.tp && tp % *request.tp == 0)
      addDegree(changes, request, tp / *request.tp, "--tp", tp,
                [tp](PlanRequest &changed) { changed.tp = tp; });
  return changes;
}

// Combines memory savings. Such a change helps requests for which no single
// saving suffices.
Changes everySaving(const PlanRequest &request, const Problem &problem) {
  const auto zeroAndRecompute = [](PlanRequest &changed) {
    changed.zeroStage.only.clear();
    changed.recompute.only.clear();
  };
  Changes changes = {{"--zero any --recompute any", zeroAndRecompute}};
  if (problem.machine.host)
    changes.push_back(
        {"--zero any --recompute any --offload any", [=](PlanRequest &changed) {
           zeroAndRecompute(changed);
           changed.offload.only.clear();
         }});
  changes.push_back({fmt::format("--pp any --zero any --recompute any{}",
                                 request.dp ? " without --dp" : ""),
                     [=](PlanRequest &changed) {
                       zeroAndRecompute(changed);
                       changed.pp.only.clear();
                       changed.dp.reset();
                     }});
  return changes;
}

// Returns changes that multiply the number of GPUs. Some factors are multiples
// of 3, because numbers of heads often are.
Changes moreGpus(const PlanRequest &request, const Problem &problem) {
  Changes changes;
  for (int times : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
    const std::int64_t gpus = std::int64_t{problem.options.devices} * times;
    changes.push_back(
        {fmt::format("--gpus {}{}", gpus,
                     request.dp || request.tp ? " without --tp and --dp" : ""),
         [gpus](PlanRequest &changed) {
           changed.gpus = gpus;
           changed.tp.reset();
           changed.dp.reset();
         }});
  }
  return changes;
}

void tryChanges(const Changes &changes, const PlanRequest &request,
                std::vector<std::string> &remedies) {
  for (const Change &change : changes) {
    PlanRequest changed = request;
    change.apply(changed);
    changed.top = 1;
    const PlanOutcome outcome = plan(changed);
    if (!outcome.best())
      continue;
    remedies.push_back(change.flags +
                       " fits: " + candidateText(*outcome.best()));
    return;
  }
}

} // namespace

std::vector<int> gpuCounts(const planner::Machine &machine, int most) {
  std::vector<int> counts;
  int node = machine.devicesPerNode;
  for (int gpus = 1; gpus < std::min(node, most + 1); ++gpus)
    if (node % gpus == 0)
      counts.push_back(gpus);
  for (int nodes = 1; nodes * node <= most; ++nodes)
    counts.push_back(nodes * node);
  return counts;
}

std::string failureOf(const PlanOutcome &outcome) {
  const auto &nearest = outcome.result.nearest;
  if (nearest && nearest->fits)
    return fmt::format("the fastest plan found takes {}: {}",
                       timeText(nearest->time.step), meshText(nearest->config));
  std::vector<RejectedMesh> meshes = rejectedMeshes(outcome);
  if (meshes.empty())
    return "no configuration is legal";
  return meshText(meshes.front().nearest->config) + ": " +
         reasonText(meshes.front(), outcome);
}

PlanOutcome planFor(const PlanRequest &request,
                    std::vector<std::string> errors) {
  if (request.objective == Objective::stepTime)
    return plan(request, std::move(errors));
  PlanOutcome outcome;
  outcome.asked = request;
  outcome.errors = std::move(errors);
  PlanRequest built = request;
  // With the objective gpus, each search sets the number of GPUs.
  if (request.objective == Objective::gpus)
    built.gpus.reset();
  outcome.problem = buildProblem(built, outcome.errors);
  if (!outcome.problem)
    return outcome;
  if (request.objective == Objective::gpus)
    searchFewestGpus(request, outcome);
  else
    searchLeastMemory(outcome);
  finishOutcome(outcome);
  return outcome;
}

std::vector<std::string> remediesOf(const PlanRequest &request,
                                    const PlanOutcome &outcome) {
  const Problem &problem = *outcome.problem;
  std::vector<std::string> remedies;
  const auto attempt = [&](const Changes &changes) {
    tryChanges(changes, request, remedies);
  };
  for (std::size_t i = 0; i < request.pins.size(); ++i)
    attempt({{"without --pin '" + request.pins[i].text + '\'',
              [i](PlanRequest &changed) {
                changed.pins.erase(changed.pins.begin() +
                                   static_cast<std::ptrdiff_t>(i));
              }}});
  if (nothingIsLegal(outcome) && request.pins.empty()) {
    attempt(oneMoreSplit(request));
    attempt(repeatedOperator(problem));
  }
  attempt(smallerMicroBatch(request));
  attempt(higherZeroStage(request));
  attempt(moreRecomputation(request));
  attempt(offloading(request, problem));
  // Tiles are tried only if nothing above helps, because they save memory only
  // where the largest weight does not fit untiled.
  if (remedies.empty())
    attempt(tiling(request));
  attempt(moreStages(request, problem));
  attempt(moreTensorRanks(request, problem));
  if (request.tp || request.dp)
    attempt({{"without --tp and --dp", [](PlanRequest &changed) {
                changed.tp.reset();
                changed.dp.reset();
              }}});
  if (!std::ranges::all_of(allSplits(), [&](planner::Split split) {
        return has(request.splits, split);
      }))
    attempt({{"--splits all",
              [](PlanRequest &changed) { changed.splits = allSplits(); }}});
  if (problem.options.precision == planner::Precision::fp32)
    for (auto half : {planner::Precision::bf16, planner::Precision::fp16})
      if (problem.machine.device.peak(half))
        attempt({{fmt::format("--precision {}", nameOf(half)),
                  [half](PlanRequest &changed) { changed.precision = half; }}});
  if (remedies.empty())
    attempt(everySaving(request, problem));
  attempt(moreGpus(request, problem));
  return remedies;
}

} // namespace mtplan::tools
