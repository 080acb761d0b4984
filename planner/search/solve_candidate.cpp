//===- solve_candidate.cpp - One way to share the devices out, exactly ----===//

#include <algorithm>
#include <limits>

#include "planner/search/pipeline_parts.h"
#include "planner/search/search.h"
#include "planner/search/segment_problem.h"
#include "planner/search/stage_solver.h"
#include "planner/simulate/in_flight.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::size_t at(int index) { return static_cast<std::size_t>(index); }

bool runsAnythingBeside(const Overlaps &overlaps, const Parallelism &how) {
  return how.pp > 1 ||
         ((overlaps.gather || overlaps.reduce) && how.dp * how.cp > 1);
}

class CandidateSolver {
public:
  CandidateSolver(const ModelGraph &g, const SearchOptions &o, const Machine &m,
                  const Parallelism &h, StageCache &c)
      : graph(g), options(o), machine(m), how(h), cache(c),
        parts(pipelineParts(g, h.layers)) {}

  std::optional<PlannedCandidate>
  run(const std::vector<BoundaryFloor> &boundaries, SolveLimits limits,
      Rejection &rejection) {
    const double bar = limits.stopAbove;
    // What the caller cannot use is known before the step is simulated only
    // where all streams' time simply adds up.
    if (runsAnythingBeside(options.overlaps, how))
      limits.stopAbove = SolveLimits{}.stopAbove;
    std::optional<PlannedCandidate> best;
    Rejection why = rejection;
    bool found = false;
    for (const BoundaryFloor &boundary : boundaries) {
      // No better than what there is, or than the caller can use.
      if (boundary.floor.value >= bar ||
          (best && best->fits && best->time.step <= boundary.floor))
        continue;
      for (std::optional<int> shared : sharedStates()) {
        Rejection here = rejection;
        std::optional<PlannedCandidate> one =
            solve(boundary.boundary, shared, limits, here);
        bool isBetter = one && (!best || isBefore(*one, *best));
        if (isBetter)
          best = std::move(one);
        if (!found || isBetter)
          why = here;
        found = true;
      }
    }
    rejection = why;
    return best;
  }

private:
  static bool isBefore(const PlannedCandidate &a, const PlannedCandidate &b) {
    if (a.fits != b.fits)
      return a.fits;
    return a.fits ? a.time.step < b.time.step
                  : a.memory.total() < b.memory.total();
  }

  // Where several stages share a parameter, all keep it in one state.
  std::vector<std::optional<int>> sharedStates() const {
    std::size_t most = 0;
    Setting setting = settingOf(options, machine, how);
    for (std::size_t p = 0; how.pp > 1 && p < graph.parameters.size(); ++p)
      if (graph.parameters[p].shared)
        most = std::max(
            most, parameterStates(graph, static_cast<int>(p), setting).size());
    if (most == 0)
      return {std::nullopt};
    std::vector<std::optional<int>> all;
    for (std::size_t state = 0; state < most; ++state)
      all.emplace_back(static_cast<int>(state));
    return all;
  }

  std::optional<PlannedCandidate> solve(std::optional<int> boundary,
                                        std::optional<int> shared,
                                        SolveLimits limits,
                                        Rejection &rejection) {
    Setting setting = settingOf(options, machine, how);
    setting.boundary = boundary;
    setting.sharedState = shared;
    StageSolver solver(graph, setting, how, cache);
    ScheduleShape shape{how.schedule, how.pp, how.virtualStages,
                        static_cast<int>(how.microBatches())};
    PlannedCandidate candidate;
    candidate.how = how;
    candidate.parts.resize(parts.size());
    candidate.fits = candidate.optimal = true;
    Seconds stageBound;
    for (int stage = 0; stage < how.pp; ++stage) {
      std::vector<PipelinePart> held;
      for (std::size_t part = at(stage); part < parts.size();
           part += at(how.pp))
        held.push_back(parts[part]);
      double inFlight =
          static_cast<double>(planner::inFlight(shape, stage).total()) /
          how.virtualStages;
      std::vector<int> copies = copiesOf(graph, held);
      StageSolution solution = solver.solve(copies, inFlight, limits);
      switch (solution.outcome) {
      case StageSolution::Outcome::illegal:
        rejection.reason = Rejection::Reason::pins;
        return std::nullopt;
      case StageSolution::Outcome::abandoned:
        rejection.reason = Rejection::Reason::bound;
        rejection.bound = std::max(rejection.bound, solution.lowerBound);
        return std::nullopt;
      case StageSolution::Outcome::tooLarge:
        candidate.fits = candidate.optimal = false;
        rejection.reason = Rejection::Reason::memory;
        rejection.bound = std::max(
            rejection.bound, solution.lowerBound.value == kNever || how.pp == 1
                                 ? solution.lowerBound
                                 : Seconds{0.0});
        break;
      case StageSolution::Outcome::fits:
        candidate.optimal = candidate.optimal && solution.optimal;
        break;
      }
      stageBound = solution.lowerBound;
      PartPlans dealt = dealOut(graph, solution.runs, held);
      for (std::size_t chunk = 0; chunk < held.size(); ++chunk)
        candidate.parts[chunk * at(how.pp) + at(stage)] =
            std::move(dealt[chunk]);
      MemoryUse memory = solution.memory;
      if (stage == 0 || memory.total() > candidate.memory.total()) {
        candidate.memory = memory;
        candidate.fullestStage = stage;
      }
    }
    if (!candidate.fits)
      rejection.needed = candidate.memory.total();
    candidate.time =
        priceStep(graph, candidate.parts, setting, how, options.overlaps);
    if (how.pp == 1 && !runsAnythingBeside(options.overlaps, how))
      candidate.lowerBound = stageBound;
    else if (candidate.optimal)
      candidate.lowerBound = candidate.time.step;
    else
      candidate.lowerBound = rejection.bound;
    return candidate;
  }

  const ModelGraph &graph;
  const SearchOptions &options;
  const Machine &machine;
  const Parallelism &how;
  StageCache &cache;
  std::vector<PipelinePart> parts;
};

} // namespace

std::vector<SegmentPlan> PlannedCandidate::plans() const {
  std::vector<SegmentPlan> all;
  for (const std::vector<SegmentPlan> &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Between stages all values lie alike; within one they may lie as they will.
std::vector<std::optional<int>> boundariesOf(const ModelGraph &graph,
                                             const Parallelism &how) {
  if (how.pp == 1)
    return {std::nullopt};
  std::vector<std::optional<int>> all{kWhole};
  std::size_t dims = 0;
  for (const SegmentGraph &segment : graph.segments)
    for (int tensor : segment.carriedIn)
      dims = std::max(dims, segment.tensors[at(tensor)].shape.size());
  for (std::size_t d = 0; how.tp > 1 && d < dims; ++d)
    all.emplace_back(static_cast<int>(d));
  return all;
}

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &how,
               const std::vector<BoundaryFloor> &boundaries, SolveLimits limits,
               StageCache &cache, Rejection &rejection) {
  return CandidateSolver(graph, options, machine, how, cache)
      .run(boundaries, limits, rejection);
}

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &how,
               SolveLimits limits, StageCache &cache, Rejection &rejection) {
  std::vector<BoundaryFloor> boundaries;
  for (std::optional<int> boundary : boundariesOf(graph, how))
    boundaries.push_back({boundary, {}});
  return solveCandidate(graph, options, machine, how, boundaries, limits, cache,
                        rejection);
}

} // namespace mtplan::planner
