//===- simplest.cpp - The simplest of almost equal plans ------------------===//

#include "planner/search/simplest.h"

#include <algorithm>
#include <cmath>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

bool areEqual(const SegmentPlan &a, const SegmentPlan &b) {
  return a.segment == b.segment && a.strategies == b.strategies &&
         a.made == b.made && a.saved == b.saved &&
         a.conversions == b.conversions && a.parameters == b.parameters;
}

// Returns the first run of each kind of layer, in chain order.
std::vector<const SegmentPlan *> kindsOf(const ModelGraph &graph,
                                         const PlannedParts &parts) {
  std::vector<const SegmentPlan *> kinds;
  for (const std::vector<SegmentPlan> &part : parts)
    for (const SegmentPlan &run : part)
      if (isLayer(graph.segments[at(run.segment)]) &&
          std::ranges::none_of(kinds, [&](const SegmentPlan *kind) {
            return areEqual(*kind, run);
          }))
        kinds.push_back(&run);
  return kinds;
}

// Returns whether Megatron-LM lacks this choice for the operator on a tensor
// axis.
bool isUnusual(const SegmentGraph &segment, const Op &op, int choice) {
  const bool isSplit = choice >= 0;
  const Split split = isSplit ? op.factors[at(choice)].split : Split::feature;
  if (isSplit && split == Split::batch)
    return true;
  const bool hasWeight =
      op.opClass == OpClass::gemm && op.phase == Phase::forward &&
      std::ranges::any_of(op.operands, [&](const Use &use) {
        return segment.tensors[at(use.tensor)].kind == TensorKind::parameter;
      });
  return hasWeight && (!isSplit || split == Split::sequence);
}

int unusualIn(const SegmentGraph &segment, const SegmentPlan &run,
              const std::vector<int> &tensorAxes) {
  int count = 0;
  for (int axis : tensorAxes)
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      count += static_cast<int>(
          isUnusual(segment, segment.ops[o], run.strategies[o].axes[at(axis)]));
  for (const PlannedConversion &change : run.conversions)
    for (const ReshardStep &step : reshardSteps(change.from, change.to))
      count += static_cast<int>(step.kind == StepKind::allToAll &&
                                contains(tensorAxes, step.axis));
  return count;
}

int techniquesOf(const Parallelism &config) {
  int count = 0;
  for (int degree : {config.dp, config.tp, config.tp2, config.pp, config.cp,
                     config.ep, config.virtualStages, config.tiles})
    count += static_cast<int>(degree > 1);
  return count +
         static_cast<int>(config.pp > 1 &&
                          config.schedule == ScheduleKind::zeroBubble) +
         static_cast<int>(config.zeroStage > 0) +
         static_cast<int>(config.recompute != Recompute::none) +
         static_cast<int>(config.offload != Offload::none);
}

// Replaces the choices of `run` by those of `like`, but keeps the position of
// `run` in the chain.
void become(SegmentPlan &run, const SegmentPlan &like) {
  const int first = run.first, count = run.count;
  run = like;
  run.first = first;
  run.count = count;
}

void joinEqual(std::vector<SegmentPlan> &runs) {
  std::vector<SegmentPlan> joined;
  for (SegmentPlan &run : runs)
    if (!joined.empty() && areEqual(joined.back(), run))
      joined.back().count += run.count;
    else
      joined.push_back(std::move(run));
  runs = std::move(joined);
}

// Returns the plan's parts with all layers of a segment equal to `layer`, or to
// the segment's longest run if `layer` belongs to another segment.
PlannedParts withLayer(const ModelGraph &graph, const PlannedParts &parts,
                       const SegmentPlan &layer) {
  std::vector<const SegmentPlan *> chosen(graph.segments.size(), nullptr);
  for (const std::vector<SegmentPlan> &part : parts)
    for (const SegmentPlan &run : part)
      if (const SegmentPlan *&one = chosen[at(run.segment)];
          isLayer(graph.segments[at(run.segment)]) &&
          (!one || run.count > one->count))
        one = &run;
  chosen[at(layer.segment)] = &layer;
  PlannedParts equal = parts;
  for (std::vector<SegmentPlan> &part : equal) {
    for (SegmentPlan &run : part)
      if (const SegmentPlan *one = chosen[at(run.segment)])
        become(run, *one);
    joinEqual(part);
  }
  return equal;
}

// Returns the variants of `plan` with equal layers that are consistent and fit.
std::vector<PlannedCandidate> withEqualLayers(const ModelGraph &graph,
                                              const Machine &machine,
                                              const SearchOptions &options,
                                              const PlannedCandidate &plan) {
  std::vector<PlannedCandidate> equal;
  const std::vector<const SegmentPlan *> kinds = kindsOf(graph, plan.parts);
  if (std::ssize(kinds) == std::ranges::count_if(graph.segments, isLayer))
    return equal; // there are no differences
  const Setting setting = settingOf(options, machine, plan.config);
  for (const SegmentPlan *kind : kinds) {
    PlannedCandidate one;
    one.parts = withLayer(graph, plan.parts, *kind);
    if (!check(graph, one.plans(), setting).empty())
      continue;
    one =
        priceGiven(graph, options, machine, plan.config, std::move(one.parts));
    one.lowerBound = plan.lowerBound;
    if (one.fits)
      equal.push_back(std::move(one));
  }
  return equal;
}

} // namespace

int kindsOfLayers(const ModelGraph &graph, const PlannedParts &parts) {
  return static_cast<int>(kindsOf(graph, parts).size());
}

Simplicity simplicityOf(const ModelGraph &graph, const PlannedCandidate &plan) {
  Simplicity result;
  std::vector<const SegmentPlan *> runs = kindsOf(graph, plan.parts);
  result.kinds = static_cast<int>(runs.size());
  const Bytes limit = plan.memory.limit;
  constexpr double kSteps = 20.0, kEnough = 4.0;
  const double free =
      std::floor((1.0 - plan.memory.total() / limit) * kSteps + 1e-9);
  result.fullness = static_cast<int>(std::max(kEnough - free, 0.0));
  result.techniques = techniquesOf(plan.config);
  if (plan.config.tp == 1)
    return result;
  for (const std::vector<SegmentPlan> &part : plan.parts)
    for (const SegmentPlan &run : part)
      if (!isLayer(graph.segments[at(run.segment)]))
        runs.push_back(&run);
  const std::vector<int> tensorAxes = tensorAxesOf(meshOf(plan.config));
  for (const SegmentPlan *run : runs)
    result.unusual +=
        unusualIn(graph.segments[at(run->segment)], *run, tensorAxes);
  return result;
}

std::optional<FasterPlan> preferSimplest(std::vector<PlannedCandidate> &plans,
                                         const ModelGraph &model,
                                         const Machine &machine,
                                         const SearchOptions &options) {
  if (plans.empty())
    return {};
  const double slowest =
      plans.front().time.step.value * (1.0 + options.tolerance);
  std::size_t replaced = 0;
  std::optional<std::pair<Simplicity, double>> least;
  PlannedCandidate chosen;
  auto consider = [&](std::size_t index, const PlannedCandidate &plan) {
    std::pair key(simplicityOf(model, plan), plan.time.step.value);
    if (key.second > slowest || (least && !(key < *least)))
      return;
    least = key;
    chosen = plan;
    replaced = index;
  };
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const PlannedCandidate &plan = plans[i];
    if (plan.time.step.value > slowest)
      break;
    consider(i, plan);
    const ModelGraph graph =
        withBatch(model, plan.config.microBatch * plan.config.dp);
    for (const PlannedCandidate &equal :
         withEqualLayers(graph, machine, options, plan))
      consider(i, equal);
  }
  std::optional<FasterPlan> faster;
  if (const PlannedCandidate &fastest = plans.front();
      chosen.time.step > fastest.time.step) {
    faster = {fastest.time.step, simplicityOf(model, fastest), least->first};
  }
  plans.erase(plans.begin() + static_cast<std::ptrdiff_t>(replaced));
  plans.insert(plans.begin(), std::move(chosen));
  return faster;
}

} // namespace mtplan::planner
