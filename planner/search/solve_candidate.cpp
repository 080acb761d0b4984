//===- solve_candidate.cpp - One way to share the devices out, exactly ----===//

#include <algorithm>
#include <deque>
#include <limits>

#include "planner/search/pipeline_parts.h"
#include "planner/search/search.h"
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
                  const Parallelism &h, SolverCache &s)
      : graph(g), options(o), machine(m), how(h), solvers(s),
        parts(pipelineParts(g, h.layers)) {}

  std::optional<PlannedCandidate> run(SolveLimits limits,
                                      Rejection &rejection) {
    // What the caller cannot use is known before the step is simulated only
    // where all streams' time simply adds up.
    if (runsAnythingBeside(options.overlaps, how))
      limits.stopAbove = SolveLimits{}.stopAbove;
    std::optional<PlannedCandidate> best;
    Rejection why = rejection;
    bool found = false;
    for (std::optional<int> boundary : boundaries()) {
      Rejection here = rejection;
      std::optional<PlannedCandidate> one = solve(boundary, limits, here);
      bool isBetter = one && (!best || isBefore(*one, *best));
      if (isBetter)
        best = std::move(one);
      if (!found || (isBetter && best))
        why = here;
      found = true;
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

  // Between stages all values lie alike; within one they may lie as they will.
  std::vector<std::optional<int>> boundaries() const {
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
  solve(std::optional<int> boundary, SolveLimits limits, Rejection &rejection) {
    Setting setting = settingOf(options, machine, how);
    setting.boundary = boundary;
    StageSolver solver(graph, setting, solvers);
    known.clear();
    ScheduleShape shape{how.schedule, how.pp, how.virtualStages,
                        static_cast<int>(how.microBatches())};
    PlannedCandidate candidate;
    candidate.how = how;
    candidate.parts.resize(parts.size());
    candidate.fits = candidate.optimal = true;
    const StageSolution *last = nullptr;
    for (int stage = 0; stage < how.pp; ++stage) {
      std::vector<PipelinePart> held;
      for (std::size_t part = at(stage); part < parts.size();
           part += at(how.pp))
        held.push_back(parts[part]);
      double inFlight =
          static_cast<double>(planner::inFlight(shape, stage).total()) /
          how.virtualStages;
      const StageSolution &solution =
          solveStage(solver, held, inFlight, limits);
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
      last = &solution;
      for (std::size_t chunk = 0; chunk < held.size(); ++chunk)
        candidate.parts[chunk * at(how.pp) + at(stage)] = solution.plans[chunk];
      renumber(stage, candidate.parts);
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
      candidate.lowerBound = last->lowerBound;
    else if (candidate.optimal)
      candidate.lowerBound = candidate.time.step;
    else
      candidate.lowerBound = rejection.bound;
    return candidate;
  }

  struct Known {
    std::vector<std::vector<CopyRange>> shape; ///< with first = 0
    double inFlight = 1.0;
    StageSolution solution;
  };

  // Stages that hold as much of the same are alike.
  const StageSolution &solveStage(StageSolver &solver,
                                  const std::vector<PipelinePart> &held,
                                  double inFlight, SolveLimits limits) {
    std::vector<std::vector<CopyRange>> shape = held;
    for (std::vector<CopyRange> &part : shape)
      for (CopyRange &range : part)
        range.first = 0;
    for (const Known &one : known)
      if (one.shape == shape && one.inFlight == inFlight)
        return one.solution;
    known.push_back({shape, inFlight, solver.solve(shape, inFlight, limits)});
    return known.back().solution;
  }

  // Layers are numbered in the model's order.
  void renumber(int stage, PartPlans &plans) const {
    for (std::size_t part = at(stage); part < parts.size();
         part += at(how.pp)) {
      int segment = -1, next = 0;
      std::size_t range = 0;
      for (SegmentPlan &plan : plans[part]) {
        if (plan.segment != segment) {
          segment = plan.segment;
          while (parts[part][range].segment != segment)
            ++range;
          next = graph.segments[at(segment)].first + parts[part][range].first;
        }
        plan.first = next;
        next += plan.count;
      }
    }
  }

  const ModelGraph &graph;
  const SearchOptions &options;
  const Machine &machine;
  const Parallelism &how;
  SolverCache &solvers;
  std::vector<PipelinePart> parts;
  std::deque<Known> known; ///< of one boundary; references stay
};

} // namespace

std::vector<SegmentPlan> PlannedCandidate::plans() const {
  std::vector<SegmentPlan> all;
  for (const std::vector<SegmentPlan> &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &how,
               SolveLimits limits, SolverCache &solvers, Rejection &rejection) {
  return CandidateSolver(graph, options, machine, how, solvers)
      .run(limits, rejection);
}

} // namespace mtplan::planner
