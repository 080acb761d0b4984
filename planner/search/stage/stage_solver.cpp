//===- stage_solver.cpp - The strategies of one pipeline stage ------------===//

#include "planner/search/stage/stage_solver.h"

#include <algorithm>
#include <cassert>

#include "planner/integers.h"
#include "planner/search/segment/once_tax.h"
#include "planner/search/segment/step_link.h"

namespace mtplan::planner {

namespace {

bool someDomainIsEmpty(const std::vector<HeldSegment> &held) {
  return std::ranges::any_of(held, [](const HeldSegment &one) {
    return contains(one.problem->link.problem.domains, 0);
  });
}

// Reads the runs of the chain. Neighbours of one segment with equal layouts are
// one run: two links may belong to one segment, and assignments may differ in
// variables that are not layouts.
std::vector<SegmentPlan> readRuns(const ModelGraph &graph,
                                  const std::vector<HeldSegment> &held,
                                  const std::vector<Run> &runs) {
  std::vector<SegmentPlan> plans;
  for (const Run &run : runs) {
    const HeldSegment &one = held[at(run.link)];
    SegmentPlan plan =
        readAssignment(graph, one.segment, *one.problem, run.assignment);
    if (!plans.empty() && plans.back().segment == one.segment) {
      SegmentPlan &before = plans.back();
      plan.first = before.first;
      plan.count = before.count;
      if (plan == before) {
        before.count += run.count;
        continue;
      }
      plan.first += before.count;
    }
    plan.count = run.count;
    plans.push_back(std::move(plan));
  }
  return plans;
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
  // Without shared parameters, `sharedState` has no effect.
  setting.sharedState = holdShared(graph, repeats) ? sharedState : std::nullopt;
  std::deque<StageCache::Solved> &known = cache.known[stageKey(repeats)];
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
  // A solution takes about 30 kB of memory, and a unit about 200 kB.
  constexpr std::size_t kManySolutions = 2000, kManyUnits = 200;
  if (known.size() > kManySolutions)
    known.clear();
  if (leastMemories.size() > kManySolutions)
    leastMemories.clear();
  if (units.size() > kManyUnits)
    units.clear();
}

StageCache::Key StageSolver::unitKey() const {
  const Boundary between = setting.boundary.value_or(std::vector{-9, -9});
  return {config.dp,
          config.tp,
          config.tp2,
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
          between->front(),
          between->back(),
          setting.sharedState.value_or(-9)};
}

StageCache::Key StageSolver::stageKey(const std::vector<int> &repeats) const {
  StageCache::Key key = unitKey();
  for (int s = 0; at(s) < repeats.size(); ++s) {
    setting.weightsOf(s).appendTo(key);
    setting.firstWeightsOf(s).appendTo(key);
  }
  key.push_back(static_cast<std::int64_t>(setting.recomputeShare * 1e9));
  key.push_back(static_cast<std::int64_t>(setting.weightsShare * 1e9));
  key.push_back(config.microBatches());
  key.push_back(passesThrough(graph) ? setting.parts : 1);
  key.insert(key.end(), repeats.begin(), repeats.end());
  return key;
}

const SegmentProblem &StageSolver::unitOf(int segment,
                                          const SumWeights &weights,
                                          const std::vector<bool> &owner) {
  StageCache::Key key = unitKey();
  weights.appendTo(key);
  key.push_back(segment);
  key.insert(key.end(), owner.begin(), owner.end());
  auto [entry, isNew] = cache.units.try_emplace(std::move(key));
  if (isNew) {
    Setting weighted = setting;
    weighted.sumWeights.assign(graph.segments.size(), weights);
    entry->second = unitProblem(graph, segment, weighted, owner);
    addOnceTax(entry->second, graph, segment, weighted, owner);
  }
  return entry->second;
}

// The first segment that reads a shared parameter bears the parameter's cost. A
// first repeat with weights of its own is a link of its own.
std::vector<HeldSegment>
StageSolver::problemsOf(const std::vector<int> &repeats) {
  std::vector<bool> owner(graph.parameters.size(), true);
  std::vector<HeldSegment> held;
  for (int s = 0; at(s) < repeats.size(); ++s) {
    if (repeats[at(s)] == 0)
      continue;
    const SumWeights first = setting.firstWeightsOf(s),
                     rest = setting.weightsOf(s);
    const int alone = first == rest ? 0 : 1, others = repeats[at(s)] - alone;
    if (alone > 0)
      held.push_back({s, &unitOf(s, first, owner), alone});
    if (others > 0)
      held.push_back({s, &unitOf(s, rest, owner), others});
    const std::vector<int> &read = held.back().problem->parameterVariables;
    for (std::size_t p = 0; p < owner.size(); ++p)
      if (read[p] >= 0 && graph.parameters[p].shared)
        owner[p] = false;
  }
  return held;
}

/// Solves a stage with bytes reserved for its workspace. If the solution needs
/// more, the search branches: one part reserves as many bytes as the solution
/// needs, and the other part forbids the combination of layouts that needs so
/// many bytes.
class StageSolver::WorkspaceSearch {
public:
  WorkspaceSearch(const StageSolver &theStage,
                  const std::vector<HeldSegment> &theHeld,
                  ChainProblem theChain, SolveLimits theLimits)
      : stage(theStage), held(theHeld), chain(std::move(theChain)),
        limits(theLimits), room(roomOf(theStage.setting).value) {}

  StageSolution run(Bytes reserve) {
    result.reserve = reserve;
    open.push_back({reserve.value, kInfinity, {}, 0.0});
    for (int part = 0; part < kMostParts && !open.empty(); ++part) {
      const Part next = std::move(open.back());
      open.pop_back();
      if (next.bound < least)
        solve(next, part == 0);
    }
    for (const Part &part : open)
      bound = std::min(bound, part.bound);
    result.lowerBound = {bound};
    result.looseBound = looseBound;
    result.limited = limited;
    const bool fits = result.outcome == StageSolution::Outcome::fits;
    result.optimal = fits && least <= bound * (1 + 1e-9);
    if (!fits && abandoned)
      result.outcome = StageSolution::Outcome::abandoned;
    return std::move(result);
  }

private:
  /// Describes the solutions that fit with `reserve` bytes of workspace and
  /// have a workspace below `ceiling`. `forbidden` excludes larger workspaces.
  struct Part {
    double reserve = 0.0, ceiling = kInfinity;
    std::vector<Forbidden> forbidden;
    double bound = 0.0; ///< no solution takes less time
  };

  void solve(const Part &part, bool isFirst) {
    ChainProblem problem = chain;
    problem.memoryLimit = room - part.reserve;
    for (const Forbidden &one : part.forbidden)
      forbid(problem.links[at(one.link)].problem, one);
    SolveLimits here = limits;
    here.stopAbove = std::min(here.stopAbove, least);
    const ChainSolution solution =
        stage.cache.solvers.solverOf(problem).solve(problem, here);
    limited = !isFirst || solution.limited;
    if (isFirst)
      looseBound = {solution.feasible || solution.abandoned
                        ? solution.lowerBound
                        : kInfinity};
    if (solution.abandoned) {
      abandoned = true;
      bound = std::min(bound, solution.lowerBound);
      return;
    }
    if (solution.runs.empty())
      return;
    StageSolution found = measured(solution);
    const bool fits = solution.feasible && found.memory.fits();
    found.outcome =
        fits ? StageSolution::Outcome::fits : StageSolution::Outcome::tooLarge;
    if (fits ? solution.cost.time < least : isFirst)
      result = found;
    if (!solution.feasible)
      return;
    // A larger reserve does not reduce the host's memory.
    if (fits || found.memory.hostIsFull()) {
      bound = std::min(bound, solution.lowerBound);
      least = fits ? std::min(least, solution.cost.time) : least;
      return;
    }
    divide(part, solution, found);
  }

  void divide(const Part &part, const ChainSolution &solution,
              const StageSolution &found) {
    Part larger = part;
    larger.bound = solution.lowerBound;
    RepeatWorkspace worst;
    const Run *cause = nullptr;
    for (const Run &run : solution.runs) {
      const HeldSegment &of = held[at(run.link)];
      RepeatWorkspace one = workspaceOf(
          stage.graph,
          readAssignment(stage.graph, of.segment, *of.problem, run.assignment),
          stage.setting);
      if (one.bytes > worst.bytes) {
        worst = std::move(one);
        cause = &run;
      }
    }
    if (const double most = worst.bytes.value;
        most > part.reserve * (1 + 1e-12)) {
      const HeldSegment &one = held[at(cause->link)];
      Part cut = larger;
      cut.forbidden.push_back(forbiddenBy(stage.graph.segments[at(one.segment)],
                                          *one.problem, cause->link,
                                          cause->assignment, worst.tensors));
      cut.ceiling = std::min(part.ceiling, most);
      if (isEasy(cut))
        open.push_back(std::move(cut));
      else
        bound = std::min(bound, solution.lowerBound);
      if (most < part.ceiling) {
        larger.reserve = most;
        open.push_back(std::move(larger));
      }
      return;
    }
    // No single repeat is the cause: runs of several repeats buffer messages,
    // and a carried value that is saved in several layouts is stored once per
    // layout, although the chain's memory counts it once. A larger reserve
    // leads to a solution that fits, but may exclude faster ones.
    bound = std::min(bound, solution.lowerBound);
    larger.reserve =
        std::max({part.reserve, found.memory.workspace.value,
                  passesThrough(stage.graph)
                      ? (found.memory.total() - found.memory.reserved).value -
                            solution.cost.memory
                      : 0.0});
    if (larger.reserve > part.reserve)
      open.push_back(std::move(larger));
  }

  // Returns whether the elimination stays small if the part's causes are
  // forbidden.
  bool isEasy(const Part &part) const {
    const Forbidden &last = part.forbidden.back();
    if (last.values.size() > kMostValues)
      return false;
    Link link = chain.links[at(last.link)];
    for (const Forbidden &one : part.forbidden)
      if (one.link == last.link)
        forbid(link.problem, one);
    return eliminationWork(link) <= kMostWork;
  }

  StageSolution measured(const ChainSolution &solution) const {
    StageSolution found;
    found.reserve = result.reserve;
    found.runs = readRuns(stage.graph, held, solution.runs);
    std::vector<bool> paid(stage.graph.parameters.size(), false);
    for (const SegmentPlan &run : found.runs)
      found.times.push_back(
          phaseTimesOf(stage.graph, run, stage.setting, paid));
    found.memory = stage.measure(found);
    return found;
  }

  /// These constants limit the number of parts, the number of values in one
  /// forbidden combination (Forbidden), and the entries that an elimination
  /// joins after combinations are forbidden. Parts beyond these limits are not
  /// solved, but their lower bounds count.
  static constexpr int kMostParts = 32;
  static constexpr std::size_t kMostValues = 16;
  static constexpr double kMostWork = 1e5;
  const StageSolver &stage;
  const std::vector<HeldSegment> &held;
  const ChainProblem chain;
  const SolveLimits limits;
  const double room;
  std::vector<Part> open; ///< the last is solved next
  /// These are the time of the best solution that fits, and a lower bound over
  /// all parts that were solved.
  double least = kInfinity, bound = kInfinity;
  Seconds looseBound{kInfinity};
  bool limited = true;    ///< whether memory limits some part
  bool abandoned = false; ///< whether the cutoff ended some part
  StageSolution result;
};

ChainProblem StageSolver::chainOf(const std::vector<HeldSegment> &held,
                                  const std::vector<int> &repeats) const {
  ChainProblem chain;
  for (const HeldSegment &one : held)
    chain.links.push_back(scaledLink(*one.problem, graph, setting, one.repeats,
                                     repeats[at(one.segment)]));
  return chain;
}

Bytes StageSolver::reserveOf(const std::vector<HeldSegment> &held,
                             const std::vector<int> &repeats) const {
  return setting.pins ? workspaceReserveOf(graph, setting, repeats)
                      : Bytes{workspaceReserve(graph, held, setting)};
}

StageSolution StageSolver::solveStage(const std::vector<int> &repeats,
                                      SolveLimits limits) {
  std::vector<HeldSegment> held = problemsOf(repeats);
  if (someDomainIsEmpty(held))
    return {};
  return WorkspaceSearch(*this, held, chainOf(held, repeats), limits)
      .run(reserveOf(held, repeats));
}

Bytes StageSolver::leastMemory(const std::vector<int> &repeats,
                               double inFlight) {
  setting.inFlight = inFlight;
  setting.boundary = std::nullopt;
  setting.sharedState = std::nullopt;
  StageCache::Key key = stageKey(repeats);
  key.push_back(static_cast<std::int64_t>(inFlight * 1e9));
  if (auto known = cache.leastMemories.find(key);
      known != cache.leastMemories.end())
    return known->second;
  const std::vector<HeldSegment> held = problemsOf(repeats);
  Bytes bytes{kInfinity};
  if (!someDomainIsEmpty(held)) {
    const ChainProblem chain = chainOf(held, repeats);
    const LeastCost least =
        cache.solvers.solverOf(chain).least(chain, {{0.0, 1.0}}).front();
    bytes = (Bytes{least.total} + reserveOf(held, repeats)) *
                (1.0 + setting.software->memory.cached) +
            setting.machine->device.reserved;
  }
  cache.leastMemories.emplace(std::move(key), bytes);
  return bytes;
}

std::vector<Seconds> StageSolver::leastTimes(const std::vector<int> &repeats) {
  assert(setting.firstWeights.empty() && "one segment has one link");
  const std::vector<HeldSegment> held = problemsOf(repeats);
  std::vector<Seconds> times(repeats.size());
  if (someDomainIsEmpty(held))
    return times;
  const ChainProblem chain = chainOf(held, repeats);
  const LeastCost least =
      cache.solvers.solverOf(chain).least(chain, {{1.0, 0.0}}).front();
  for (std::size_t link = 0; link < held.size(); ++link)
    times[at(held[link].segment)] = {least.byLink[link]};
  return times;
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
