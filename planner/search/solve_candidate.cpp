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

/// One way to lay out what stages hand on and share, solved.
struct Attempt {
  std::optional<int> boundary, shared;
  std::vector<const StageSolution *> stages;
  bool fits = true, optimal = true;
  Seconds step;
  Seconds bound; ///< no plan of this kind is faster
  int fullestStage = 0;

  const MemoryUse &memory() const { return stages[at(fullestStage)]->memory; }
};

class CandidateSolver {
public:
  CandidateSolver(const ModelGraph &g, const SearchOptions &o, const Machine &m,
                  const Parallelism &h, StageCache &c)
      : graph(g), options(o), how(h), cache(c), setting(settingOf(o, m, h)),
        adds(!runsAnythingBeside(o.overlaps, h)) {
    std::vector<PipelinePart> parts = pipelineParts(g, h.layers);
    held.resize(at(how.pp));
    for (std::size_t part = 0; part < parts.size(); ++part)
      held[part % at(how.pp)].push_back(parts[part]);
  }

  std::optional<PlannedCandidate>
  run(const std::vector<BoundaryFloor> &boundaries, SolveLimits limits,
      Rejection &rejection) {
    const double bar = limits.stopAbove;
    const Seconds floor = rejection.bound;
    // What the caller cannot use is known before the step is simulated only
    // where all streams' time simply adds up.
    if (!adds)
      limits.stopAbove = kNever;
    rejection.reason = Rejection::Reason::pins;
    for (const BoundaryFloor &boundary : boundaries) {
      // No better than what there is, or than the caller can use.
      Seconds least = std::max(floor, boundary.floor);
      if (least.value >= bar || (best && best->fits && best->step <= least)) {
        bound = std::min(bound, least);
        if (!best)
          rejection.reason = Rejection::Reason::bound;
        continue;
      }
      attempt(boundary.boundary, std::nullopt, least, limits, rejection);
      if (!sharesAgree()) {
        tried.clear();
        for (int state = 0; state < sharedStates(); ++state)
          attempt(boundary.boundary, state, least, limits, rejection);
      }
      take();
    }
    if (best)
      return assemble(rejection);
    if (rejection.reason == Rejection::Reason::bound)
      rejection.bound = bound;
    return std::nullopt;
  }

private:
  // Solves all stages; leaves what came of it in `tried`, or why nothing did.
  void attempt(std::optional<int> boundary, std::optional<int> shared,
               Seconds least, SolveLimits limits, Rejection &rejection) {
    Attempt one{boundary, shared, {}, true, true, {}, least, 0};
    Setting here = settingOfAttempt(one);
    StageSolver solver(graph, here, how, cache);
    ScheduleShape shape{how.schedule, how.pp, how.virtualStages,
                        static_cast<int>(how.microBatches())};
    for (int stage = 0; stage < how.pp; ++stage) {
      double inFlight =
          static_cast<double>(planner::inFlight(shape, stage).total()) /
          how.virtualStages;
      const StageSolution &solution =
          solver.solve(copiesOf(graph, held[at(stage)]), inFlight, limits);
      if (solution.outcome == StageSolution::Outcome::illegal)
        return;
      // A stage alone is the whole step; one that cannot fit ends it.
      if ((how.pp == 1 && adds) || solution.lowerBound.value == kNever)
        one.bound = std::max(one.bound, solution.lowerBound);
      if (solution.outcome == StageSolution::Outcome::abandoned) {
        rejection.reason = Rejection::Reason::bound;
        bound = std::min(bound, one.bound);
        return;
      }
      bool fits = solution.outcome == StageSolution::Outcome::fits;
      one.fits = one.fits && fits;
      one.optimal = one.optimal && fits && solution.optimal;
      one.stages.push_back(&solution);
      if (solution.memory.total() > one.memory().total())
        one.fullestStage = stage;
    }
    if (one.fits)
      one.step = stepSecondsOf(
          stepProblemOf(graph, pricedParts(one), here, how, options.overlaps));
    if (one.optimal && !adds)
      one.bound = one.step;
    tried.push_back(std::move(one));
  }

  // With every stage free to choose, parameters that several hold may come out
  // alike; then nothing is lost by asking for it.
  bool sharesAgree() const {
    if (how.pp == 1 || tried.empty())
      return true;
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
      if (!graph.parameters[p].shared)
        continue;
      const ParameterState *first = nullptr;
      for (const StageSolution *stage : tried.back().stages)
        for (const SegmentPlan &run : stage->runs)
          if (const auto &state = run.parameters[p]) {
            if (first && *first != *state)
              return false;
            first = &*state;
          }
    }
    return true;
  }

  int sharedStates() const {
    std::size_t most = 0;
    for (std::size_t p = 0; p < graph.parameters.size(); ++p)
      if (graph.parameters[p].shared)
        most = std::max(
            most, parameterStates(graph, static_cast<int>(p), setting).size());
    return static_cast<int>(most);
  }

  // The best of what was tried with one boundary joins the best of all.
  void take() {
    for (Attempt &one : tried) {
      bound = std::min(bound, one.bound);
      if (!best || isBefore(one, *best))
        best = std::move(one);
    }
    tried.clear();
  }

  static bool isBefore(const Attempt &a, const Attempt &b) {
    if (a.fits != b.fits)
      return a.fits;
    return a.fits ? a.step < b.step : a.memory().total() < b.memory().total();
  }

  Setting settingOfAttempt(const Attempt &one) const {
    Setting here = setting;
    here.boundary = one.boundary;
    here.sharedState = one.shared;
    return here;
  }

  PricedParts pricedParts(const Attempt &one) const {
    PricedParts parts(at(how.pp * how.virtualStages));
    for (std::size_t stage = 0; stage < held.size(); ++stage) {
      const StageSolution &solution = *one.stages[stage];
      auto shares = dealOut(graph, solution.runs, held[stage]);
      for (std::size_t chunk = 0; chunk < shares.size(); ++chunk)
        for (const Share &share : shares[chunk])
          parts[chunk * at(how.pp) + stage].push_back(
              {&solution.runs[at(share.run)], &solution.times[at(share.run)],
               share.count});
    }
    return parts;
  }

  PlannedCandidate assemble(Rejection &rejection) const {
    PlannedCandidate candidate;
    candidate.how = how;
    candidate.parts.resize(at(how.pp * how.virtualStages));
    for (std::size_t stage = 0; stage < held.size(); ++stage) {
      const StageSolution &solution = *best->stages[stage];
      auto shares = dealOut(graph, solution.runs, held[stage]);
      for (std::size_t chunk = 0; chunk < shares.size(); ++chunk)
        for (const Share &share : shares[chunk]) {
          SegmentPlan plan = solution.runs[at(share.run)];
          plan.first = share.first;
          plan.count = share.count;
          candidate.parts[chunk * at(how.pp) + stage].push_back(
              std::move(plan));
        }
    }
    candidate.time = priceStep(graph, pricedParts(*best),
                               settingOfAttempt(*best), how, options.overlaps);
    candidate.memory = best->memory();
    candidate.fullestStage = best->fullestStage;
    candidate.fits = best->fits;
    candidate.lowerBound = bound;
    candidate.optimal =
        best->fits && candidate.time.step.value <= bound.value * (1 + 1e-9);
    rejection.bound = bound;
    if (!best->fits) {
      rejection.reason = Rejection::Reason::memory;
      rejection.needed = candidate.memory.total();
    }
    return candidate;
  }

  const ModelGraph &graph;
  const SearchOptions &options;
  const Parallelism &how;
  StageCache &cache;
  Setting setting; ///< nothing said of boundaries and shared states
  bool adds;       ///< all streams' time adds up to the step
  std::vector<std::vector<PipelinePart>> held; ///< by stage
  std::vector<Attempt> tried;                  ///< with one boundary
  std::optional<Attempt> best;
  Seconds bound{kNever}; ///< of all boundaries
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
  cache.trim();
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
