//===- solve_candidate.cpp - One way to share the devices out, exactly ----===//

#include <algorithm>
#include <limits>

#include "planner/index.h"
#include "planner/search/pipeline_parts.h"
#include "planner/search/search.h"
#include "planner/search/segment_problem.h"
#include "planner/search/stage_solver.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Where the sum of all times is only near what is asked for, there are many
// sums to minimise, and little is gained by the last of each.
constexpr std::int64_t kFewPoints = 100'000;

/// One way to lay out what stages hand on and share, solved.
struct Attempt {
  std::optional<int> boundary, shared;
  double weight = 1.0; ///< see Setting::besideWeight
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
        hidesTraffic(hidesReplicaTraffic(o, h)),
        adds(h.pp == 1 && !hidesTraffic && setting.updateAddsUp) {
    std::vector<PipelinePart> parts = pipelineParts(g, h.layers);
    held.resize(at(how.pp));
    for (std::size_t part = 0; part < parts.size(); ++part)
      held[part % at(how.pp)].push_back(parts[part]);
  }

  std::optional<PlannedCandidate>
  run(const CandidateFloors &floors, SolveLimits limits, Rejection &rejection) {
    bar = limits.stopAbove;
    around = floors.around;
    around.resize(at(how.pp));
    const Seconds floor = rejection.bound;
    // What the caller cannot use is known before the step is simulated only
    // where all streams' time simply adds up.
    if (!adds) {
      limits.stopAbove = kNever;
      limits.points = std::min(limits.points, kFewPoints);
    }
    rejection.reason = Rejection::Reason::pins;
    for (const BoundaryFloor &boundary : floors.boundaries) {
      // No better than what there is, or than the caller can use.
      Seconds least = std::max(floor, boundary.floor);
      if (least.value >= ofInterest()) {
        bound = std::min(bound, least);
        if (!best)
          rejection.reason = Rejection::Reason::bound;
        continue;
      }
      least = attemptAll(boundary.boundary, least, limits, rejection);
      bound = std::min(bound, least);
    }
    rejection.limited = limited;
    if (best)
      return assemble(rejection);
    if (rejection.reason == Rejection::Reason::bound)
      rejection.bound = bound;
    return std::nullopt;
  }

private:
  // Strategies are the best for a step in which all adds up. Where some of it
  // may go on beside the rest, those for a step in which that costs nothing
  // come first: they give the bound, and of a step in between, mostly one of
  // the two is best. A weight in between gives both again where they lie far
  // apart. All there is to be gained is what is exposed: a little is left
  // alone. Returns a step that no plan of this boundary beats.
  Seconds attemptAll(std::optional<int> boundary, Seconds least,
                     SolveLimits limits, Rejection &rejection) {
    Attempt one;
    one.boundary = boundary;
    if (adds)
      return attemptShared(one, least, limits, rejection);
    exposed = 1.0;
    for (auto [weight, worthwhile] :
         {std::pair{0.0, 0.0}, std::pair{1.0, 0.002}, std::pair{0.125, 0.05}}) {
      if (least.value * (1 + 1e-9) >= ofInterest() || exposed < worthwhile)
        break;
      one.weight = weight;
      least = attemptShared(one, least, limits, rejection);
    }
    return least;
  }

  // With every stage free to choose, parameters that several hold may come out
  // alike; then nothing is lost by asking for it. Else the states that were
  // chosen are tried, one for all; the bound is that of the free choice.
  Seconds attemptShared(Attempt one, Seconds least, SolveLimits limits,
                        Rejection &rejection) {
    least = attempt(one, least, limits, rejection);
    std::vector<int> states = chosenStates();
    if (states.size() > 1 && tried.back().fits) {
      tried.clear();
      for (int state : states) {
        one.shared = state;
        attempt(one, least, limits, rejection);
      }
    }
    for (Attempt &done : tried)
      if (!best || isBefore(done, *best))
        best = std::move(done);
    tried.clear();
    return least;
  }

  // What a stage computes, C, stands in a row, and the step takes at least that
  // and `around` it. If what has the weight w, T, stands in a row with it, also
  // C + T, but not around it; else at least T. So it takes no less than any
  // mean of the two, of which this one is made of the least C + w T.
  Seconds boundOf(const Attempt &one, const StageSolution &solution,
                  int stage) const {
    double w = one.weight;
    Seconds before = around[at(stage)];
    return hidesTraffic ? (solution.lowerBound + before) / (1.0 + w)
                        : solution.lowerBound + before * (1.0 - w);
  }

  // Solves all stages; leaves what came of it in `tried`, or why nothing did.
  Seconds attempt(Attempt one, Seconds least, SolveLimits limits,
                  Rejection &rejection) {
    one.bound = least;
    Setting here = settingOfAttempt(one);
    for (int stage = 0; stage < how.pp; ++stage) {
      here.recomputeShare = recomputeShareOf(how, stage);
      const StageSolution &solution =
          StageSolver(graph, here, how, cache)
              .solve(copiesOf(graph, held[at(stage)]), inFlightOf(how, stage),
                     limits);
      if (solution.outcome == StageSolution::Outcome::illegal)
        return {kNever};
      limited = limited || solution.limited;
      // +infinity where the stage cannot fit.
      one.bound = std::max(one.bound, boundOf(one, solution, stage));
      if (solution.outcome == StageSolution::Outcome::abandoned ||
          (!adds && one.bound.value >= ofInterest() &&
           one.bound.value < kNever)) {
        rejection.reason = Rejection::Reason::bound;
        return one.bound;
      }
      bool fits = solution.outcome == StageSolution::Outcome::fits;
      one.fits = one.fits && fits;
      one.optimal = one.optimal && fits && solution.optimal;
      one.stages.push_back(&solution);
      if (solution.memory.total() > one.memory().total())
        one.fullestStage = stage;
    }
    if (one.fits) {
      StepProblem problem =
          stepProblemOf(graph, pricedParts(one), here, how, options.overlaps);
      one.step = stepSecondsOf(problem);
      if (!adds && one.weight == 0.0)
        exposed = 1.0 - stepSecondsOf(alone(std::move(problem))) / one.step;
    }
    tried.push_back(std::move(one));
    return tried.back().bound;
  }

  // Slower plans are neither the candidate's best nor of use to the caller.
  double ofInterest() const {
    return best && best->fits ? std::min(bar, best->step.value) : bar;
  }

  // Without what the weight is of.
  static StepProblem alone(StepProblem problem) {
    for (StageTimes &stage : problem.stages) {
      stage.update = {};
      for (ChunkTimes &chunk : stage.chunks) {
        chunk.down = chunk.hostUpdate = chunk.up = {};
        for (SliceTimes &slice : chunk.slices)
          slice.gather = slice.reduce = {};
      }
    }
    return problem;
  }

  // Of parameters that several stages hold: what the last attempt kept them in,
  // by number among their states, each once.
  std::vector<int> chosenStates() const {
    std::vector<int> chosen;
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
      if (how.pp == 1 || tried.empty() || !graph.parameters[p].shared)
        continue;
      std::vector<ParameterState> states =
          parameterStates(graph, static_cast<int>(p), setting);
      for (const StageSolution *stage : tried.back().stages)
        for (const SegmentPlan &run : stage->runs)
          if (const auto &state = run.parameters[p])
            chosen.push_back(static_cast<int>(
                std::ranges::find(states, *state) - states.begin()));
    }
    std::ranges::sort(chosen);
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    return chosen;
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
    here.besideWeight = one.weight;
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
    for (const StageSolution *stage : best->stages)
      candidate.memory.host =
          std::max(candidate.memory.host, stage->memory.host);
    candidate.fullestStage = best->fullestStage;
    candidate.fits = best->fits;
    candidate.lowerBound = bound;
    candidate.isLeastSum = best->fits && best->optimal;
    candidate.optimal =
        best->fits && candidate.time.step.value <= bound.value * (1 + 1e-9);
    rejection.bound = bound;
    if (!best->fits) {
      bool hostIsFull = candidate.memory.total() <= candidate.memory.limit;
      rejection.reason =
          hostIsFull ? Rejection::Reason::host : Rejection::Reason::memory;
      rejection.needed =
          hostIsFull ? candidate.memory.host : candidate.memory.total();
    }
    return candidate;
  }

  const ModelGraph &graph;
  const SearchOptions &options;
  const Parallelism &how;
  StageCache &cache;
  Setting setting;      ///< nothing said of boundaries and shared states
  bool hidesTraffic;    ///< of parameters and gradients, beside compute
  bool adds;            ///< all streams' time adds up to the step
  bool limited = false; ///< some stage, by memory
  std::vector<std::vector<PipelinePart>> held; ///< by stage
  std::vector<Attempt> tried;                  ///< with one boundary
  std::optional<Attempt> best;
  Seconds bound{kNever};       ///< of all boundaries
  double bar = kNever;         ///< slower plans are of no interest
  std::vector<Seconds> around; ///< see CandidateFloors
  /// Of the step of weight 0, the share that what has the weight adds.
  double exposed = 1.0;
};

} // namespace

std::vector<SegmentPlan> PlannedCandidate::plans() const {
  std::vector<SegmentPlan> all;
  for (const std::vector<SegmentPlan> &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Between stages all values lie alike; within one they may lie as they will.
// Split ones first, which are mostly better: the rest is then soon given up.
std::vector<std::optional<int>> boundariesOf(const ModelGraph &graph,
                                             const Parallelism &how) {
  if (how.pp == 1)
    return {std::nullopt};
  std::vector<std::optional<int>> all;
  std::size_t dims = 0;
  for (const SegmentGraph &segment : graph.segments)
    for (int tensor : segment.carriedIn)
      dims = std::max(dims, segment.tensors[at(tensor)].shape.size());
  for (std::size_t d = 0; how.tp > 1 && d < dims; ++d)
    all.emplace_back(static_cast<int>(d));
  all.emplace_back(kWhole);
  return all;
}

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &how,
               const CandidateFloors &floors, SolveLimits limits,
               StageCache &cache, Rejection &rejection) {
  cache.trim();
  return CandidateSolver(graph, options, machine, how, cache)
      .run(floors, limits, rejection);
}

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &how,
               SolveLimits limits, StageCache &cache, Rejection &rejection) {
  CandidateFloors floors;
  for (std::optional<int> boundary : boundariesOf(graph, how))
    floors.boundaries.push_back({boundary, {}});
  return solveCandidate(graph, options, machine, how, floors, limits, cache,
                        rejection);
}

} // namespace mtplan::planner
