//===- solve_candidate.cpp - One configuration, solved exactly ------------===//

#include "planner/search/solve_candidate.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "planner/integers.h"
#include "planner/search/bound/step_forms.h"
#include "planner/search/solved_stages.h"

namespace mtplan::planner {

namespace {

/// Holds the solution for one boundary layout and one shared state.
struct Attempt {
  Boundary boundary;
  std::optional<int> shared;
  /// Scales the traffic that may overlap compute, and the updates, in the
  /// minimised sum; ignored if `form` is set.
  double weight = 1.0;
  std::optional<StepForm> form; ///< what the strategies minimise
  std::vector<const StageSolution *> stages;
  bool fits = true, optimal = true;
  Seconds step;
  Seconds bound; ///< no plan of this attempt is faster
  int fullestStage = 0;

  const MemoryUse &memory() const { return stages[at(fullestStage)]->memory; }
};

class CandidateSolver {
public:
  CandidateSolver(const ModelGraph &g, const SearchOptions &o, const Machine &m,
                  const Parallelism &h, StageCache &c)
      : graph(g), options(o), config(h), cache(c), setting(settingOf(o, m, h)),
        microBatches(static_cast<double>(h.microBatches())),
        sequential(shareWithoutTraffic(o, h)),
        adds(h.pp == 1 && sequential == 1.0 && setting.updateAddsUp &&
             o.software->host == HostLaunch{}) {
    std::vector<PipelinePart> parts = pipelineParts(g, h.layers);
    held.resize(at(config.pp));
    std::vector<int> layers(at(config.pp));
    for (std::size_t part = 0; part < parts.size(); ++part) {
      held[part % at(config.pp)].push_back(parts[part]);
      if (!config.layers.empty())
        layers[part % at(config.pp)] += config.layers[part];
    }
    order.resize(at(config.pp));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{},
                             [&](int stage) { return layers[at(stage)]; });
  }

  std::optional<PlannedCandidate>
  run(const CandidateBounds &bounds, SolveLimits limits, Rejection &rejection) {
    cutoff = limits.stopAbove;
    const Seconds lowerBound = rejection.bound;
    // If streams overlap, the sum of all times only approximates the step. The
    // cutoff does not apply to this sum, because only the simulation shows that
    // a plan is too slow, and closing the gap of each sum gains little.
    if (!adds) {
      limits.stopAbove = kInfinity;
      limits.points = std::min(limits.points, kFewPoints);
    }
    if (isTooLarge(bounds.memory, rejection))
      return std::nullopt;
    rejection.reason = Rejection::Reason::pins;
    for (const BoundaryBound &boundary : bounds.boundaries) {
      // Skips a layout whose bound exceeds the incumbent or the cutoff.
      Seconds least = std::max(lowerBound, boundary.step);
      if (least.value < currentCutoff() && !boundary.least.compute.empty())
        least = std::max(least, stepSecondsOf(boundary.least.problem));
      if (least.value >= currentCutoff()) {
        bound = std::min(bound, least);
        if (!best && least.value < kInfinity)
          rejection.reason = Rejection::Reason::bound;
        continue;
      }
      known = &boundary;
      stageBounds = boundary.stages;
      stageBounds.resize(at(config.pp));
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
  // Returns whether some stage exceeds the memory in every layout, and sets
  // `rejection` if so. Only likely stages are tested: the first has most
  // micro-batches in flight, another may have most layers, and the last has the
  // logits. The test is skipped if `lowerBound`, which counts sizes alone, is
  // below 3/4 of the memory, because such configurations nearly always fit.
  bool isTooLarge(Bytes lowerBound, Rejection &rejection) {
    constexpr double kNear = 0.75;
    const Bytes room = setting.machine->device.memory;
    if (lowerBound < kNear * room)
      return false;
    for (int stage : std::set<int>{0, order.front(), config.pp - 1}) {
      Setting here = setting;
      here.recomputeShare = recomputeShareOf(config, stage);
      Bytes needed{kInfinity};
      try {
        needed = StageSolver(graph, here, config, cache)
                     .leastMemory(repeatsOf(graph, held[at(stage)]),
                                  inFlightOf(config, stage));
      } catch (const TooLarge &) {
        return false; // a fixed layout between stages may be solvable
      }
      if (needed.value == kInfinity || needed <= room * (1 + 1e-12))
        continue;
      rejection.reason = Rejection::Reason::memory;
      rejection.needed = needed;
      rejection.isLowerBound = true;
      rejection.bound = {kInfinity};
      rejection.limited = true;
      return true;
    }
    return false;
  }

  // Solves one layout between stages; returns a lower bound of the step with
  // that layout. The strategies minimise a sum of times, which is the step only
  // if nothing overlaps. With several stages, overlappable work has a weight in
  // the sum. Weight 0 (free) comes first and gives the bound. Weight 1 comes
  // next, because one of the two is usually best. A weight between them follows
  // if the exposed time, which limits the gain, is large.
  Seconds attemptAll(const Boundary &boundary, Seconds least,
                     SolveLimits limits, Rejection &rejection) {
    Attempt one;
    one.boundary = boundary;
    if (adds)
      return attemptShared(one, least, limits, rejection);
    if (config.pp == 1 && config.offload == Offload::none)
      return attemptForms(one, least, limits, rejection);
    exposed = 1.0;
    for (auto [weight, worthwhile] :
         {std::pair{0.0, 0.0}, std::pair{1.0, 0.002}, std::pair{0.125, 0.05}}) {
      if (least.value * (1 + 1e-9) >= currentCutoff() || exposed < worthwhile)
        break;
      one.weight = weight;
      least = attemptShared(one, least, limits, rejection);
    }
    return least;
  }

  // Maximises a lower bound of a step with one stage: the least value of a
  // weighted mean of the step's forms. Each round finds the plan that minimises
  // the present mean, and adds the form that is largest for this plan, with the
  // share that is best for all plans so far.
  Seconds attemptForms(Attempt one, Seconds least, SolveLimits limits,
                       Rejection &rejection) {
    constexpr int kRounds = 8;
    constexpr double kNear = 1e-5;
    std::vector<PhaseTimes> times = known->times;
    times.resize(graph.segments.size());
    const std::vector<StepForm> forms =
        stepFormsOf(graph, times, setting, config, options.overlaps);
    StepForm form = forms.front();
    std::vector<PricedParts> found;
    for (int round = 0; round < kRounds; ++round) {
      one.form = form;
      least = attempt(one, least, limits, rejection);
      if (tried.empty())
        return least;
      found.push_back(pricedParts(tried.back()));
      keepBest();
      if (least.value * (1 + 1e-9) >= currentCutoff())
        return least;
      const StepForm &largest =
          *std::ranges::max_element(forms, {}, [&](const StepForm &other) {
            return other.of(found.back(), config);
          });
      const auto [share, most] = bestShare(form, largest, found, config);
      if (most <= least * (1 + kNear) || share == 0.0)
        break;
      form = mean(form, largest, share);
    }
    return attemptSums(one, least, limits, rejection);
  }

  // Minimises weighted sums of times, in place of a form, to find other plans
  // with one stage, until the bound is within 0.1 % of the cutoff.
  Seconds attemptSums(Attempt one, Seconds least, SolveLimits limits,
                      Rejection &rejection) {
    constexpr double kFar = 1e-3;
    one.form.reset();
    for (double weight : {1.0, 0.125}) {
      if (least.value * (1 + kFar) >= currentCutoff())
        break;
      one.weight = weight;
      least = attemptShared(one, least, limits, rejection);
    }
    return least;
  }

  // Lets every stage choose the states of shared parameters freely. If the
  // stages fit but choose different states, each chosen state is tried for all
  // stages. The bound of the free choice holds for these attempts, too. If all
  // possible states are tried, the least of their bounds holds.
  Seconds attemptShared(Attempt one, Seconds least, SolveLimits limits,
                        Rejection &rejection) {
    least = attempt(one, least, limits, rejection);
    std::vector<int> states = chosenStates();
    if (states.size() > 1 && tried.back().fits) {
      tried.clear();
      std::optional<int> all;
      if (limits.points > 0 && isFree(one)) // the bound is worth the time
        all = sharedStates();
      for (int state = 0; state < all.value_or(0); ++state)
        if (!contains(states, state))
          states.push_back(state);
      Seconds leastOfAll{kInfinity};
      for (int state : states) {
        one.shared = state;
        leastOfAll =
            std::min(leastOfAll, attempt(one, least, limits, rejection));
      }
      if (all)
        least = std::max(least, leastOfAll);
    }
    keepBest();
    return least;
  }

  // Returns the number of states of the only shared parameter; nothing if there
  // are several.
  std::optional<int> sharedStates() const {
    std::optional<int> count;
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
      if (!graph.parameters[p].shared)
        continue;
      if (count)
        return std::nullopt;
      count = static_cast<int>(
          parameterStates(graph, static_cast<int>(p), setting).size());
    }
    return count;
  }

  void keepBest() {
    for (Attempt &done : tried)
      if (!best || isBefore(done, *best))
        best = std::move(done);
    tried.clear();
  }

  // Solves all stages; adds the solution to `tried`, or sets the reason why
  // there is none in `rejection`. Returns a lower bound of the step.
  Seconds attempt(Attempt one, Seconds least, SolveLimits limits,
                  Rejection &rejection) {
    one.bound = least;
    Setting here = settingOfAttempt(one);
    std::vector<Seconds> compute = leastCompute();
    one.stages.resize(at(config.pp));
    for (int stage : order) {
      here.recomputeShare = recomputeShareOf(config, stage);
      const StageSolution &solution =
          StageSolver(graph, here, config, cache)
              .solve(repeatsOf(graph, held[at(stage)]),
                     inFlightOf(config, stage), limits);
      if (solution.outcome == StageSolution::Outcome::illegal)
        return {kInfinity};
      limited = limited || solution.limited;
      // The bound is +infinity if the stage cannot fit.
      const Seconds sum = adds ? solution.lowerBound : solution.looseBound;
      one.bound = std::max(
          one.bound,
          one.form ? one.form->fixed + sum
                   : stageBounds[at(stage)].ofSum(sum, one.weight, sequential));
      if (isFree(one) && one.bound.value < kInfinity) {
        compute[at(stage)] = std::max(compute[at(stage)], solution.looseBound);
        one.bound = std::max(one.bound,
                             ofAllStages(stageBounds, compute, microBatches));
      }
      if (solution.outcome == StageSolution::Outcome::abandoned ||
          (!adds && one.bound.value >= currentCutoff() &&
           one.bound.value < kInfinity)) {
        rejection.reason = Rejection::Reason::bound;
        return one.bound;
      }
      bool fits = solution.outcome == StageSolution::Outcome::fits;
      one.fits = one.fits && fits;
      one.optimal = one.optimal && fits && solution.optimal;
      one.stages[at(stage)] = &solution;
    }
    for (int stage = 0; stage < config.pp; ++stage)
      if (one.stages[at(stage)]->memory.total() > one.memory().total())
        one.fullestStage = stage;
    if (one.fits) {
      StepProblem problem = stepProblemOf(graph, pricedParts(one), here, config,
                                          options.overlaps);
      one.step = stepSecondsOf(problem);
      if (isFree(one)) {
        const Setting solved = settingOfAttempt(one);
        // attemptShared() reads the bounds of given states only with points.
        if (!one.shared || limits.points > 0)
          one.bound =
              SolvedStages{graph, solved, config, held, cache, compute}.raise(
                  one.bound, *known,
                  {std::min(one.step.value, currentCutoff())}, limits);
        exposed = 1.0 - stepSecondsOf(alone(std::move(problem))) / one.step;
      }
    }
    closed = closed && (one.optimal || !one.form);
    tried.push_back(std::move(one));
    return tried.back().bound;
  }

  // Returns whether the traffic that may overlap compute has no weight.
  bool isFree(const Attempt &one) const {
    return !adds && !one.form && one.weight == 0.0;
  }

  std::vector<Seconds> leastCompute() const { // by stage, in a step
    std::vector<Seconds> compute(at(config.pp));
    for (std::size_t part = 0; part < known->least.compute.size(); ++part)
      compute[part % compute.size()] +=
          microBatches * known->least.compute[part];
    return compute;
  }

  // Returns the time of the configuration's best plan or, if lower, the
  // caller's cutoff.
  double currentCutoff() const {
    return best && best->fits ? std::min(cutoff, best->step.value) : cutoff;
  }

  // Returns the problem without the work that Attempt::weight scales.
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

  // Returns the indices of the states that the last attempt chose for shared
  // parameters, each once.
  std::vector<int> chosenStates() const {
    std::vector<int> chosen;
    for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
      if (config.pp == 1 || tried.empty() || !graph.parameters[p].shared)
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
    if (one.form) {
      one.form->setWeights(here);
      return here;
    }
    SumWeights weights =
        overlapWeights(1.0, one.weight, one.weight, config.zeroStage);
    weights.update = one.weight;
    here.sumWeights.assign(graph.segments.size(), weights);
    return here;
  }

  // Calls `visit(virtual stage, stage's solution, slice)` for every slice.
  template <typename Visit>
  void forEachSlice(const Attempt &one, Visit visit) const {
    for (std::size_t stage = 0; stage < held.size(); ++stage) {
      const StageSolution &solution = *one.stages[stage];
      auto shares = splitRuns(graph, solution.runs, held[stage]);
      for (std::size_t chunk = 0; chunk < shares.size(); ++chunk)
        for (const RunSlice &share : shares[chunk])
          visit(chunk * at(config.pp) + stage, solution, share);
    }
  }

  PricedParts pricedParts(const Attempt &one) const {
    PricedParts parts(at(config.pp * config.virtualStages));
    forEachSlice(one, [&](std::size_t part, const StageSolution &solution,
                          const RunSlice &share) {
      parts[part].push_back({&solution.runs[at(share.run)],
                             &solution.times[at(share.run)], share.count});
    });
    return parts;
  }

  PlannedCandidate assemble(Rejection &rejection) const {
    PlannedCandidate candidate;
    candidate.config = config;
    candidate.parts.resize(at(config.pp * config.virtualStages));
    forEachSlice(*best, [&](std::size_t part, const StageSolution &solution,
                            const RunSlice &share) {
      SegmentPlan plan = solution.runs[at(share.run)];
      plan.first = share.first;
      plan.count = share.count;
      candidate.parts[part].push_back(std::move(plan));
    });
    candidate.time =
        priceStep(graph, pricedParts(*best), settingOfAttempt(*best), config,
                  options.overlaps);
    candidate.memory = best->memory();
    for (const StageSolution *stage : best->stages)
      candidate.memory.host =
          std::max(candidate.memory.host, stage->memory.host);
    candidate.fullestStage = best->fullestStage;
    candidate.fits = best->fits;
    candidate.lowerBound = bound;
    candidate.sumsAreClosed = best->fits && best->optimal && closed;
    candidate.addsUp = adds;
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
  const Parallelism &config;
  StageCache &cache;
  Setting setting; ///< lacks boundary and shared state
  double microBatches;
  double sequential;    ///< see StageBound::ofSum
  bool adds;            ///< whether the streams' times add up to the step
  bool limited = false; ///< whether memory limited some stage
  bool closed = true;   ///< whether every minimised form reached its bound
  std::vector<std::vector<PipelinePart>> held; ///< by stage: its virtual stages
  /// Lists the stages by descending number of layers, the order of solving: the
  /// largest stages limit the step most, and other cuts reuse their solutions.
  std::vector<int> order;
  std::vector<Attempt> tried; ///< attempts with the current layout
  std::optional<Attempt> best;
  Seconds bound{kInfinity};  ///< lower bound over all layouts
  double cutoff = kInfinity; ///< slower plans are useless to the caller
  std::vector<StageBound> stageBounds;  ///< by stage
  const BoundaryBound *known = nullptr; ///< of the current layout
  /// Holds the share of the step that the overlappable work adds at weight 0.
  double exposed = 1.0;
};

} // namespace

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &config,
               const CandidateBounds &bounds, SolveLimits limits,
               StageCache &cache, Rejection &rejection) {
  cache.trim();
  return CandidateSolver(graph, options, machine, config, cache)
      .run(bounds, limits, rejection);
}

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const SearchOptions &options,
               const Machine &machine, const Parallelism &config,
               SolveLimits limits, StageCache &cache, Rejection &rejection) {
  CandidateBounds bounds;
  for (const Boundary &boundary : boundariesOf(graph, config))
    bounds.boundaries.push_back({boundary, {}, {}, {}, {}});
  return solveCandidate(graph, options, machine, config, bounds, limits, cache,
                        rejection);
}

} // namespace mtplan::planner
