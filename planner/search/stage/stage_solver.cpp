//===- stage_solver.cpp - The strategies of one pipeline stage ------------===//

#include "planner/search/stage/stage_solver.h"

#include <algorithm>

#include "planner/integers.h"
#include "planner/search/space/segment_runs.h"

namespace mtplan::planner {

namespace {

bool someDomainIsEmpty(const std::vector<HeldSegment> &held) {
  return std::ranges::any_of(held, [](const HeldSegment &one) {
    return contains(one.problem->link.problem.domains, 0);
  });
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

// Returns the bytes of one rank's shard of the tensor of `use`.
double shardBytes(const Use &use, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh) {
  const Tensor &tensor = tensors[at(use.tensor)];
  double bytes = tensorBytes(tensor.shape, tensor.elementBytes);
  for (int factor : use.factors)
    for (std::size_t a = 0; factor >= 0 && a < strategy.axes.size(); ++a)
      if (strategy.axes[a] == factor)
        bytes /= mesh.axes[a].size;
  return bytes;
}

// Returns the bytes of operands and results of `op` on one rank with its best
// split, without inputs, parameters and saved values, which count elsewhere.
double leastWorkingSet(const Op &op, const std::vector<Strategy> &strategies,
                       const std::vector<Tensor> &tensors,
                       const std::vector<int> &savedVariables,
                       const std::vector<int> &tiles, const Mesh &mesh) {
  double least = kInfinity;
  for (const Strategy &strategy : strategies) {
    double bytes = 0.0;
    for (const std::vector<Use> *uses : {&op.operands, &op.results})
      for (const Use &use : *uses) {
        std::size_t index = at(use.tensor);
        if (tensors[index].kind == TensorKind::activation &&
            savedVariables[index] < 0)
          bytes += shardBytes(use, strategy, tensors, mesh) / tiles[index];
      }
    least = std::min(least, bytes);
  }
  return least;
}

// Returns a lower bound of the bytes of a segment's inputs: for each input, the
// maximum over its readers of the smallest shard that a strategy of the reader
// needs.
double leastInputs(const SegmentGraph &segment, const SegmentProblem &problem,
                   const Mesh &mesh) {
  std::vector<double> least(segment.tensors.size(), 0.0);
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    for (const Use &use : segment.ops[o].operands) {
      std::size_t index = at(use.tensor);
      if (segment.tensors[index].kind != TensorKind::input)
        continue;
      double smallest = kInfinity;
      for (const Strategy &strategy : problem.strategies[o])
        smallest = std::min(smallest,
                            shardBytes(use, strategy, segment.tensors, mesh));
      least[index] = std::max(least[index], smallest);
    }
  double bytes = 0.0;
  for (double one : least)
    bytes += one;
  return bytes;
}

// Returns the bytes reserved for transient values: inputs, and twice the
// largest working set of an operator with its best split, because one set is in
// use while another is received. The reserve does not depend on the plan, so
// that the memory that the solver limits is a sum over its cost tables.
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

bool holdShared(const ModelGraph &graph, const std::vector<int> &repeats) {
  for (std::size_t s = 0; s < repeats.size(); ++s)
    for (const Tensor &tensor : graph.segments[s].tensors)
      if (repeats[s] > 0 && tensor.kind == TensorKind::parameter &&
          graph.parameters[at(tensor.parameter)].shared)
        return true;
  return false;
}

// Returns whether some segment passes a carried value through unchanged, so
// that a virtual stage needs only one saved copy.
bool passesThrough(const ModelGraph &graph) {
  for (const SegmentGraph &segment : graph.segments)
    for (int tensor : segment.carriedIn)
      if (isCarriedOut(segment, tensor))
        return true;
  return false;
}

} // namespace

Link scaledLink(const SegmentProblem &unit, const ModelGraph &model,
                const Setting &setting, int repeats) {
  Link link = unit.link;
  link.repeat = repeats;
  auto microBatches = static_cast<double>(setting.microBatches);
  for (std::size_t t = 0; t < unit.scales.size(); ++t) {
    CostTable &table = link.problem.tables[t];
    const auto [costScale, recomputed, parameter] = unit.scales[t];
    if (recomputed) {
      for (double &seconds : table.time)
        seconds *= 1.0 + setting.recomputeShare;
      for (double &bytes : table.memory)
        bytes *= 1.0 - setting.recomputeShare;
    }
    if (costScale == CostScale::perMicroBatch) {
      for (double &seconds : table.time)
        seconds *= microBatches;
      for (double &bytes : table.memory)
        bytes *= setting.inFlight;
    } else if (costScale == CostScale::carriedOut) {
      for (double &bytes : table.memory)
        bytes *= setting.inFlight * std::min(setting.parts, repeats) / repeats;
    } else if (costScale == CostScale::perChunk) {
      for (double &bytes : table.memory)
        bytes *=
            static_cast<double>(std::min(setting.parts, repeats)) / repeats;
    } else if (costScale == CostScale::sharedByRepeats) {
      for (std::vector<double> *costs : {&table.time, &table.memory})
        for (double &cost : *costs)
          cost /= repeats;
    } else if (costScale == CostScale::accumulation) {
      const auto &states = unit.parameterStates[at(parameter)];
      for (std::size_t s = 0; s < states.size(); ++s)
        table.time[s] = accumulationTime(model.parameters[at(parameter)],
                                         states[s], setting)
                            .value;
    }
  }
  return link;
}

SegmentProblem buildSegmentProblem(const ModelGraph &model, int segment,
                                   const Setting &setting,
                                   const std::vector<bool> &owner) {
  SegmentProblem problem = unitProblem(model, segment, setting, owner);
  problem.link = scaledLink(problem, model, setting, problem.link.repeat);
  return problem;
}

StageSolver::StageSolver(const ModelGraph &theGraph, const Setting &theSetting,
                         const Parallelism &theConfig, StageCache &theCache)
    : graph(theGraph), setting(theSetting), sharedState(theSetting.sharedState),
      config(theConfig), cache(theCache) {}

MemoryUse StageSolver::measure(const StageSolution &solution) const {
  MemoryUse memory = memoryOf(graph, solution.runs, setting);
  memory.reserveWorkspace(solution.reserve);
  return memory;
}

const StageSolution &StageSolver::solve(const std::vector<int> &repeats,
                                        double inFlight, SolveLimits limits) {
  setting.inFlight = inFlight;
  // Without shared parameters the state is irrelevant.
  setting.sharedState = holdShared(graph, repeats) ? sharedState : std::nullopt;
  StageCache::Key key = unitKey();
  key.push_back(static_cast<std::int64_t>(setting.recomputeShare * 1e9));
  key.push_back(config.microBatches());
  key.push_back(passesThrough(graph) ? setting.parts : 1);
  key.insert(key.end(), repeats.begin(), repeats.end());
  std::deque<StageCache::Solved> &known = cache.known[key];
  bool forAnyCutoff = limits.stopAbove == kInfinity;
  for (const StageCache::Solved &one : known) {
    if (forAnyCutoff && one.inFlight == inFlight && one.points == limits.points)
      return one.solution;
    // The fastest plan without a memory limit remains the fastest if it fits.
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
  // A solution for one cutoff is not valid for another.
  known.push_back({forAnyCutoff ? inFlight : -1.0, limits.points,
                   solveStage(repeats, limits)});
  return known.back().solution;
}

void StageCache::trim() {
  // A solution takes about 30 kB, and a unit about 200 kB.
  constexpr std::size_t kManySolutions = 2000, kManyUnits = 200;
  if (known.size() > kManySolutions)
    known.clear();
  if (units.size() > kManyUnits)
    units.clear();
}

StageCache::Key StageSolver::unitKey() const {
  return {config.dp,
          config.tp,
          config.cp,
          config.ep,
          config.microBatch,
          config.zeroStage,
          config.zeroRanks,
          static_cast<std::int64_t>(config.recompute),
          static_cast<std::int64_t>(config.offload),
          static_cast<std::int64_t>(setting.updateAddsUp),
          static_cast<std::int64_t>(setting.hostAddsUp),
          config.tiles,
          setting.boundary.value_or(-9),
          setting.sharedState.value_or(-9),
          static_cast<std::int64_t>(setting.overlapWeight * 1024)};
}

// The first segment of the stage that reads a shared parameter has the cost of
// that parameter.
std::vector<HeldSegment>
StageSolver::problemsOf(const std::vector<int> &repeats) {
  std::vector<bool> owner(graph.parameters.size(), true);
  std::vector<HeldSegment> held;
  for (std::size_t s = 0; s < repeats.size(); ++s) {
    if (repeats[s] == 0)
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

StageSolution StageSolver::solveStage(const std::vector<int> &repeats,
                                      SolveLimits limits) {
  StageSolution result;
  std::vector<HeldSegment> held = problemsOf(repeats);
  if (someDomainIsEmpty(held))
    return result;
  ChainProblem chain;
  for (const HeldSegment &one : held)
    chain.links.push_back(
        scaledLink(*one.problem, graph, setting, repeats[at(one.segment)]));
  const Device &device = setting.machine->device;
  const double room = (device.memory - device.reserved).value;

  // The reserve usually covers the plan's peak. If it does not, the next round
  // reserves that peak; the first round's lower bound still holds for every
  // plan.
  ChainSolver &solver = cache.solvers.solverOf(chain);
  result.reserve = setting.pins ? workspaceReserveOf(graph, setting, repeats)
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
    // No plan fits if the first round is infeasible.
    else if (!solution.feasible && round == 0)
      result.lowerBound = {kInfinity};
    // A larger reserve does not reduce the host's memory.
    if (fits || !solution.feasible || result.memory.hostIsFull())
      return result;
    workspace = std::max(workspace, result.memory.workspace.value);
    // A carried value that is saved in several layouts is stored once per
    // layout, although the chain's memory counts it once.
    if (passesThrough(graph))
      workspace =
          std::max(workspace, (result.memory.total() - device.reserved).value -
                                  solution.cost.memory);
  }
  return result;
}

// The reserve ignores pins, so that a plan that fits still fits if pins require
// that plan.
Bytes workspaceReserveOf(const ModelGraph &graph, const Setting &setting,
                         const std::vector<int> &repeats) {
  Setting free = setting;
  free.pins = nullptr;
  const std::vector<bool> owner(graph.parameters.size(), true);
  std::deque<SegmentProblem> problems;
  std::vector<HeldSegment> held;
  for (std::size_t s = 0; s < repeats.size(); ++s)
    if (repeats[s] > 0) {
      auto segment = static_cast<int>(s);
      problems.push_back(unitProblem(graph, segment, free, owner));
      held.push_back({segment, &problems.back()});
    }
  return {workspaceReserve(graph, held, setting)};
}

std::vector<int> repeatsOf(const ModelGraph &graph,
                           const std::vector<PipelinePart> &parts) {
  std::vector<int> repeats(graph.segments.size(), 0);
  for (const PipelinePart &part : parts)
    for (const RepeatRange &range : part)
      repeats[at(range.segment)] += range.count;
  return repeats;
}

std::vector<std::vector<RunSlice>>
splitRuns(const ModelGraph &graph, const std::vector<SegmentPlan> &runs,
          const std::vector<PipelinePart> &parts) {
  std::vector<std::vector<RunSlice>> shares(parts.size());
  std::vector<int> left; // the repeats of each run that are not assigned yet
  left.reserve(runs.size());
  for (const SegmentPlan &run : runs)
    left.push_back(run.count);
  for (std::size_t part = 0; part < parts.size(); ++part)
    for (const RepeatRange &range : parts[part]) {
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
