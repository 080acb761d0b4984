//===- stage_solver.cpp - The strategies of one pipeline stage ------------===//

#include "planner/search/stage_solver.h"

#include <algorithm>
#include <limits>

#include "planner/index.h"
#include "planner/search/segment_problem.h"
#include "planner/search/tiling.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool someDomainIsEmpty(const std::vector<HeldSegment> &held) {
  for (const HeldSegment &one : held)
    if (std::ranges::find(one.problem->link.problem.domains, 0) !=
        one.problem->link.problem.domains.end())
      return true;
  return false;
}

std::vector<SegmentPlan> readRuns(const ModelGraph &graph,
                                  const std::vector<HeldSegment> &held,
                                  const std::vector<Run> &runs) {
  std::vector<SegmentPlan> plans;
  int link = -1, first = 0;
  for (const Run &run : runs) {
    const HeldSegment &one = held[at(run.link)];
    if (run.link != link)
      first = 0;
    link = run.link;
    SegmentPlan plan =
        readAssignment(graph, one.segment, *one.problem, run.assignment);
    plan.first += first;
    plan.count = run.count;
    first += run.count;
    plans.push_back(std::move(plan));
  }
  return plans;
}

// Bytes of one rank's piece of what `use` touches.
double pieceOf(const Use &use, const Strategy &strategy,
               const std::vector<Tensor> &tensors, const Mesh &mesh) {
  const Tensor &tensor = tensors[static_cast<std::size_t>(use.tensor)];
  double piece = tensor.elementBytes;
  for (std::int64_t size : tensor.shape)
    piece *= static_cast<double>(size);
  for (int factor : use.factors)
    for (std::size_t a = 0; factor >= 0 && a < strategy.axes.size(); ++a)
      if (strategy.axes[a] == factor)
        piece /= mesh.axes[a].size;
  return piece;
}

// Bytes of all that `op` touches on one rank where it is split best, but for
// inputs, parameters and saved values, which have their own place.
double leastWorkingSet(const Op &op, const std::vector<Strategy> &strategies,
                       const std::vector<Tensor> &tensors,
                       const std::vector<int> &savedVariables,
                       const std::vector<int> &tiles, const Mesh &mesh) {
  double least = kNever;
  for (const Strategy &strategy : strategies) {
    double bytes = 0.0;
    for (const std::vector<Use> *uses : {&op.operands, &op.results})
      for (const Use &use : *uses) {
        auto index = static_cast<std::size_t>(use.tensor);
        if (tensors[index].kind == TensorKind::activation &&
            savedVariables[index] < 0)
          bytes += pieceOf(use, strategy, tensors, mesh) / tiles[index];
      }
    least = std::min(least, bytes);
  }
  return least;
}

// The least any plan keeps of a segment's inputs: of each the largest piece
// that some reader needs, where that reader is split best.
double leastInputs(const SegmentGraph &segment, const SegmentProblem &problem,
                   const Mesh &mesh) {
  std::vector<double> least(segment.tensors.size(), 0.0);
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    for (const Use &use : segment.ops[o].operands) {
      auto index = static_cast<std::size_t>(use.tensor);
      if (segment.tensors[index].kind != TensorKind::input)
        continue;
      double smallest = kNever;
      for (const Strategy &strategy : problem.strategies[o])
        smallest =
            std::min(smallest, pieceOf(use, strategy, segment.tensors, mesh));
      least[index] = std::max(least[index], smallest);
    }
  double bytes = 0.0;
  for (double one : least)
    bytes += one;
  return bytes;
}

// Room for what lives shorter than a phase: twice what the hungriest operator
// touches where it is split best, one set computing and one arriving. A number
// of the candidate, not of its plans, so that what is limited adds up.
double workspaceReserve(const ModelGraph &graph,
                        const std::vector<HeldSegment> &held,
                        const Setting &setting) {
  const Mesh &mesh = setting.mesh;
  double most = 0.0, inputs = 0.0;
  for (const HeldSegment &one : held) {
    const SegmentGraph &segment = graph.segments[at(one.segment)];
    std::vector<int> tiles = tilesOfTensors(graph, segment, setting);
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      most = std::max(
          most, leastWorkingSet(segment.ops[o], one.problem->strategies[o],
                                segment.tensors, one.problem->savedVariables,
                                tiles, mesh));
    inputs += leastInputs(segment, *one.problem, mesh);
  }
  return 2.0 * most + inputs;
}

} // namespace

StageSolver::StageSolver(const ModelGraph &theGraph, const Setting &theSetting,
                         const Parallelism &theHow, StageCache &theCache)
    : graph(theGraph), setting(theSetting), sharedState(theSetting.sharedState),
      how(theHow), cache(theCache) {}

MemoryUse StageSolver::measure(const StageSolution &solution) const {
  MemoryUse memory = memoryOf(graph, solution.runs, setting);
  memory.keepRoom(solution.reserve);
  return memory;
}

namespace {

bool holdShared(const ModelGraph &graph, const std::vector<int> &copies) {
  for (std::size_t s = 0; s < copies.size(); ++s)
    for (const Tensor &tensor : graph.segments[s].tensors)
      if (copies[s] > 0 && tensor.kind == TensorKind::parameter &&
          graph.parameters[at(tensor.parameter)].shared)
        return true;
  return false;
}

// Whether parts of the model keep values of which one copy is enough each.
bool handsOn(const ModelGraph &graph) {
  for (const SegmentGraph &segment : graph.segments)
    for (int tensor : segment.carriedIn)
      if (isHandedOn(segment, tensor))
        return true;
  return false;
}

} // namespace

const StageSolution &StageSolver::solve(const std::vector<int> &copies,
                                        double inFlight, SolveLimits limits) {
  setting.inFlight = inFlight;
  // Where nothing is shared it makes no difference.
  setting.sharedState = holdShared(graph, copies) ? sharedState : std::nullopt;
  StageCache::Key key = unitKey();
  key.push_back(how.microBatches());
  key.push_back(handsOn(graph) ? setting.parts : 1);
  key.insert(key.end(), copies.begin(), copies.end());
  std::deque<StageCache::Known> &known = cache.known[key];
  bool forAnyBar = limits.stopAbove == kNever;
  for (const StageCache::Known &one : known) {
    if (forAnyBar && one.inFlight == inFlight && one.points == limits.points)
      return one.solution;
    // The fastest plan of all stays that, as long as it fits.
    if (one.solution.outcome == StageSolution::Outcome::fits &&
        !one.solution.limited) {
      StageSolution again = one.solution;
      again.memory = measure(again);
      if (again.memory.fits()) {
        known.push_back({inFlight, limits.points, std::move(again)});
        return known.back().solution;
      }
    }
  }
  // An answer for one bar alone is of no use for another.
  known.push_back(
      {forAnyBar ? inFlight : -1.0, limits.points, solveAnew(copies, limits)});
  return known.back().solution;
}

void StageCache::trim() {
  // Some 30 kB and 200 kB each.
  constexpr std::size_t kManySolutions = 2000, kManyUnits = 200;
  if (known.size() > kManySolutions)
    known.clear();
  if (units.size() > kManyUnits)
    units.clear();
}

StageCache::Key StageSolver::unitKey() const {
  return {how.dp,
          how.tp,
          how.cp,
          how.ep,
          how.microBatch,
          how.zeroStage,
          how.zeroRanks,
          static_cast<std::int64_t>(how.recompute),
          static_cast<std::int64_t>(how.offload),
          static_cast<std::int64_t>(setting.updateAddsUp),
          static_cast<std::int64_t>(setting.hostAddsUp),
          how.tiles,
          how.recomputeLayers,
          static_cast<std::int64_t>(setting.recomputeShare * 1e9),
          setting.boundary.value_or(-9),
          setting.sharedState.value_or(-9),
          static_cast<std::int64_t>(setting.besideWeight * 1024)};
}

// The first segment of the stage that reads a shared parameter pays for it.
std::vector<HeldSegment>
StageSolver::problemsOf(const std::vector<int> &copies) {
  std::vector<bool> owner(graph.parameters.size(), true);
  std::vector<HeldSegment> held;
  for (std::size_t s = 0; s < copies.size(); ++s) {
    if (copies[s] == 0)
      continue;
    auto segment = static_cast<int>(s);
    StageCache::Key key = unitKey();
    key.push_back(segment);
    key.insert(key.end(), owner.begin(), owner.end());
    auto [entry, isNew] = cache.units.try_emplace(std::move(key));
    if (isNew)
      entry->second = unitProblem(graph, segment, setting, owner);
    held.push_back({segment, &entry->second});
    for (std::size_t p = 0; p < owner.size(); ++p)
      if (entry->second.parameterVariables[p] >= 0 &&
          graph.parameters[p].shared)
        owner[p] = false;
  }
  return held;
}

StageSolution StageSolver::solveAnew(const std::vector<int> &copies,
                                     SolveLimits limits) {
  StageSolution result;
  std::vector<HeldSegment> held = problemsOf(copies);
  if (someDomainIsEmpty(held))
    return result;
  ChainProblem chain;
  for (const HeldSegment &one : held)
    chain.links.push_back(
        scaledLink(*one.problem, graph, setting, copies[at(one.segment)]));
  const Device &device = setting.machine->device;
  const double room = (device.memory - device.reserved).value;

  // The reserve almost always covers what the plan's values need at once. Where
  // it does not, room is made for what was found, and the first solution's
  // bound still bounds every plan.
  ChainSolver &solver = cache.solvers.solverOf(chain);
  result.reserve = setting.pins ? workspaceReserveOf(graph, setting, copies)
                                : Bytes{workspaceReserve(graph, held, setting)};
  double workspace = result.reserve.value;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    chain.memoryLimit = room - workspace;
    ChainSolution solution = solver.solve(chain, limits);
    if (round == 0)
      result.lowerBound = {solution.lowerBound};
    result.limited = round > 0 || solution.limited;
    if (solution.abandoned) {
      result.outcome = StageSolution::Outcome::abandoned;
      return result;
    }
    if (solution.runs.empty())
      return result;
    result.runs = readRuns(graph, held, solution.runs);
    result.times.clear();
    std::vector<bool> paid(graph.parameters.size(), false);
    for (const SegmentPlan &run : result.runs)
      result.times.push_back(phaseTimesOf(graph, run, setting, paid));
    result.memory = measure(result);
    bool fits = solution.feasible && result.memory.fits();
    result.outcome =
        fits ? StageSolution::Outcome::fits : StageSolution::Outcome::tooLarge;
    if (fits)
      result.optimal =
          solution.cost.time <= result.lowerBound.value * (1 + 1e-9);
    // Too large at the first try: nothing there fits, at any speed.
    else if (!solution.feasible && round == 0)
      result.lowerBound = {kNever};
    // What the host holds is limited apart, and by no other choice of room.
    if (fits || !solution.feasible || result.memory.hostIsFull())
      return result;
    workspace = std::max(workspace, result.memory.workspace.value);
    // Kept in several layouts, what copies hand on is there in each.
    if (handsOn(graph))
      workspace =
          std::max(workspace, (result.memory.total() - device.reserved).value -
                                  solution.cost.memory);
  }
  return result;
}

// The same room whatever is pinned: a plan that fits stays one that does when
// it is asked for by name.
Bytes workspaceReserveOf(const ModelGraph &graph, const Setting &setting,
                         const std::vector<int> &copies) {
  Setting free = setting;
  free.pins = nullptr;
  const std::vector<bool> owner(graph.parameters.size(), true);
  std::deque<SegmentProblem> problems;
  std::vector<HeldSegment> held;
  for (std::size_t s = 0; s < copies.size(); ++s)
    if (copies[s] > 0) {
      auto segment = static_cast<int>(s);
      problems.push_back(unitProblem(graph, segment, free, owner));
      held.push_back({segment, &problems.back()});
    }
  return {workspaceReserve(graph, held, setting)};
}

std::vector<int> copiesOf(const ModelGraph &graph,
                          const std::vector<PipelinePart> &parts) {
  std::vector<int> copies(graph.segments.size(), 0);
  for (const PipelinePart &part : parts)
    for (const CopyRange &range : part)
      copies[at(range.segment)] += range.count;
  return copies;
}

std::vector<std::vector<Share>>
dealOut(const ModelGraph &graph, const std::vector<SegmentPlan> &runs,
        const std::vector<PipelinePart> &parts) {
  std::vector<std::vector<Share>> shares(parts.size());
  std::vector<int> left; // of each run
  left.reserve(runs.size());
  for (const SegmentPlan &run : runs)
    left.push_back(run.count);
  for (std::size_t part = 0; part < parts.size(); ++part)
    for (const CopyRange &range : parts[part]) {
      int first = range.first, end = range.first + range.count;
      for (std::size_t r = 0; r < runs.size() && first < end; ++r) {
        if (runs[r].segment != range.segment || left[r] == 0)
          continue;
        int count = std::min(left[r], end - first);
        shares[part].push_back({static_cast<int>(r),
                                graph.segments[at(range.segment)].first + first,
                                count});
        left[r] -= count;
        first += count;
      }
    }
  return shares;
}

} // namespace mtplan::planner
