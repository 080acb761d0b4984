//===- search.cpp - Branch and bound over configurations ------------------===//

#include "planner/search/search.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "planner/integers.h"
#include "planner/search/bound/candidate_bounds.h"
#include "planner/search/every_plan.h"
#include "planner/search/on_threads.h"
#include "planner/search/plan_pool.h"

namespace mtplan::planner {

namespace {

using Reason = Rejection::Reason;
using Level = Candidate::BoundLevel;

constexpr std::size_t kAtOnce = 4, kThreads = 2, kPrepared = 512;

class Search {
public:
  Search(const ModelGraph &m, const Machine &on, const SearchOptions &o)
      : model(m), machine(on), options(o), bounds(m, on, o),
        relaxation(m, on, o), pool(o) {}

  SearchResult run() {
    for (const Parallelism &config :
         enumerateSpace(model, machine, options, result.rejections)) {
      add(config, {});
      if (allowsUnevenCut(config, options))
        addCuts(config);
    }
    // Configurations that probably fit come first, because once a fast plan is
    // known, the solver gives up early on all slower configurations.
    branchAndBound();
    isFirstPass = false;
    open.merge(later);
    branchAndBound();
    for (std::size_t i : ready)
      open.emplace(candidates[i].bound.value, i);
    for (auto [bound, i] : open)
      exclude(candidates[i],
              bound < cutoffOf(candidates[i]) ? Reason::budget : Reason::bound);
    retryUnresolved();
    closeGaps();
    conclude();
    return std::move(result);
  }

private:
  void branchAndBound() {
    while ((hasNext() || !ready.empty()) && !isStopped())
      if (pool.plans().empty() && timeIsUp() && ready.empty())
        solveOne();
      else if (!hasNext() || ready.size() >= kAtOnce || timeIsUp())
        solveAll(std::exchange(ready, {}));
      else
        expandNext();
  }

  // Opens the configuration with the fewest recomputed layers that may fit, and
  // rejects the configurations with still fewer recomputed layers. `lowerBound`
  // bounds the step for any number of recomputed layers.
  void add(const Parallelism &config, Seconds lowerBound) {
    std::vector<int> counts = recomputeCounts(config, options);
    result.candidates += std::ssize(counts);
    if (Bytes onHost = bounds.hostMemory(config);
        onHost > hostShareOf(machine, options.devices))
      return excludeAll(config, std::ssize(counts), Reason::host, onHost);
    auto needed = [&](int count) {
      return bounds.memory(withCount(config, count));
    };
    if (Bytes least = needed(counts.back()); least > machine.device.memory)
      return excludeAll(withCount(config, counts.back()), std::ssize(counts),
                        Reason::memory, least);
    auto first = std::ranges::partition_point(counts, [&](int count) {
      return needed(count) > machine.device.memory;
    });
    if (first != counts.begin())
      excludeAll(withCount(config, first[-1]), first - counts.begin(),
                 Reason::memory, needed(first[-1]));
    push(withCount(config, *first), lowerBound, {});
  }

  // Rejects `count` configurations, because their memory bound exceeds the
  // limit.
  void excludeAll(const Parallelism &config, std::int64_t count, Reason reason,
                  Bytes lowerBound) {
    Rejection rejection = tooLarge(config, reason, lowerBound);
    rejection.count = count;
    result.rejections.push_back(std::move(rejection));
  }

  void push(Parallelism config, Seconds lowerBound,
            std::optional<OrderedCuts> cuts) {
    Seconds bound =
        std::max(lowerBound, pipelineBound(bounds.compute(config), config));
    const bool waits = isFirstPass && (cuts || !probablyFits(config));
    (waits ? later : open).emplace(bound.value, candidates.size());
    candidates.push_back({std::move(config), bound, {}, {}, std::move(cuts)});
  }

  // Opens one candidate that represents all uneven cuts. The number of
  // recomputed layers depends on the cut, unless all layers or none are
  // recomputed.
  void addCuts(const Parallelism &config) {
    std::vector<int> counts = recomputeCounts(config, options);
    auto boundOf = [&](int count) {
      return bounds.memoryOfAnyCut(withCount(config, count));
    };
    auto fits = std::ranges::find_if(counts, [&](int count) {
      return boundOf(count) <= machine.device.memory;
    });
    if (fits == counts.end())
      return excludeCuts(
          config, {}, tooLarge(config, Reason::memory, boundOf(counts.back())));
    bool counted =
        isCounted(options) && config.recompute != Recompute::selective;
    push(withCount(config, counted ? 0 : *fits), {}, OrderedCuts{});
  }

  bool probablyFits(const Parallelism &config) {
    return bounds.memory(config) <= 0.75 * machine.device.memory;
  }

  bool hasNext() const {
    return !open.empty() && open.begin()->first < pool.cutoff();
  }
  // Returns whether the search must stop. Every loop of the search calls this
  // function, which therefore also reports the progress.
  bool timeIsUp() const {
    if (options.watch)
      options.watch({std::ssize(open) + std::ssize(later) + std::ssize(ready),
                     {pool.best()}});
    return options.stop && options.stop();
  }
  bool isStopped() const { return !pool.plans().empty() && timeIsUp(); }

  // Returns the time above which plans of a configuration are useless. A plan
  // with uneven stages or partial recomputation is more complicated, so it must
  // be faster than the fastest plan so far, without a tolerance.
  double cutoffOf(const Parallelism &config) const {
    const bool isSimple = !options.layers.empty() || isEven(config);
    const bool isCounted =
        config.recomputeLayers > 0 && options.recomputeLayers.only.size() != 1;
    return isSimple && !isCounted ? pool.cutoff() : pool.cutoffOfFastest();
  }

  double cutoffOf(const Candidate &one) const {
    return one.cuts ? pool.cutoffOfFastest() : cutoffOf(one.config);
  }

  struct Answer {
    std::optional<PlannedCandidate> planned;
    Rejection rejection;
    SolveLimits limits;
  };

  void solveEach(std::vector<Answer> &answers) {
    std::vector<CandidateBounds> boundsOf(answers.size());
    for (const Answer &answer : answers)
      relaxation.prepare({answer.rejection.config},
                         boundariesOf(model, answer.rejection.config));
    for (std::size_t i = 0; i < answers.size(); ++i)
      boundsOf[i] =
          candidateBounds(model, answers[i].rejection.config,
                          answers[i].rejection.bound, bounds, relaxation);
    onThreads(kThreads, answers.size(), [&](std::size_t i, std::size_t) {
      auto &[planned, rejection, limits] = answers[i];
      const Parallelism config = rejection.config;
      ModelGraph graph = withBatch(model, config.microBatch * config.dp);
      try {
        planned = solveCandidate(graph, options, machine, config, boundsOf[i],
                                 limits, caches[i % kThreads], rejection);
      } catch (const TooLarge &error) {
        rejection = rejectionOf(config, Reason::budget, rejection.bound);
        rejection.detail = error.what();
      }
    });
  }

  // Takes the candidates with the lowest bounds, as long as they have the same
  // level. Tightens their bounds or, at the last level, moves up to kAtOnce of
  // them to `ready`. The number of candidates does not depend on the computer,
  // and all are compared with the same cutoff, so the result is deterministic.
  void expandNext() {
    auto first = [&]() -> const Candidate & {
      return candidates[open.begin()->second];
    };
    if (first().isCut() && first().bound.value < cutoffOf(first()))
      return expandCuts();
    Level level = first().level;
    std::size_t many = level < Level::relaxed ? kPrepared : kAtOnce;
    std::vector<std::size_t> next;
    while (!open.empty() && next.size() < many && first().level == level) {
      const bool isUseful = first().bound.value < cutoffOf(first());
      if (isUseful && first().isCut())
        break;
      const std::size_t i = open.begin()->second;
      open.erase(open.begin());
      if (isUseful)
        (level == Level::step ? ready : next).push_back(i);
      else
        exclude(candidates[i], Reason::bound);
      if (ready.size() >= kAtOnce)
        break;
    }
    if (level < Level::microBatch)
      boundAll(next, level == Level::work);
    else if (level == Level::microBatch)
      for (std::size_t i : next)
        boundByRelaxation(candidates[i], relaxation);
    else if (level == Level::relaxed)
      onThreads(kThreads, next.size(), [&](std::size_t i, std::size_t) {
        Candidate &one = candidates[next[i]];
        one.bound = std::max(one.bound, stepSecondsOf(std::move(*one.relaxed)));
        one.relaxed.reset();
        one.level = Level::step;
      });
    for (std::size_t i : next)
      if (candidates[i].bound.value < kInfinity)
        open.emplace(candidates[i].bound.value, i);
  }

  // Solves the most promising candidate, so that a search without time left
  // returns a plan. Candidates that probably fit come first. Among these,
  // candidates whose tensor and context ranks share a node come first, and then
  // candidates with lower bounds.
  void solveOne() {
    auto classOf = [&](const auto &entry) {
      const auto &[config, bound, level, relaxed, cuts] =
          candidates[entry.second];
      return cuts                                             ? 3
             : !probablyFits(config)                          ? 2
             : config.tp * config.cp > machine.devicesPerNode ? 1
                                                              : 0;
    };
    auto found = open.end();
    for (int wanted = 0; wanted < 3 && found == open.end(); ++wanted)
      found = std::ranges::find_if(
          open, [&](const auto &entry) { return classOf(entry) == wanted; });
    if (found == open.end())
      return expandNext();
    const std::size_t index = found->second;
    open.erase(found);
    solveAll({index});
  }

  void expandCuts() {
    std::size_t index = open.begin()->second;
    open.erase(open.begin());
    if (candidates[index].cuts->layers.empty()) {
      const Parallelism &config = candidates[index].config;
      relaxation.prepare({config});
      candidates[index].cuts =
          orderedCuts(config, relaxation.layerTimes(config));
    }
    OrderedCuts cuts = std::move(*candidates[index].cuts);
    // Several cuts become candidates at once, so that all threads have work.
    for (std::size_t i = 0; i < kAtOnce && cuts.next < cuts.layers.size();
         ++i) {
      Seconds bound = std::max(candidates[index].bound, cuts.bounds[cuts.next]);
      Parallelism config = candidates[index].config;
      config.layers = cuts.layers[cuts.next++];
      add(withCount(config, recomputeCounts(config, options).front()), bound);
    }
    Candidate &candidate = candidates[index];
    if (cuts.next < cuts.layers.size()) {
      candidate.bound = std::max(candidate.bound, cuts.bounds[cuts.next]);
      open.emplace(candidate.bound.value, index);
    }
    candidate.cuts = std::move(cuts);
  }

  // Raises the bounds of the candidates by the best plan of one micro-batch. If
  // `isOnce` is true, recomputation is bounded by its compute alone, which
  // needs no solver.
  void boundAll(const std::vector<std::size_t> &next, bool isOnce) {
    std::vector<Parallelism> once;
    for (std::size_t i : next) {
      const Parallelism &config = candidates[i].config;
      once.push_back(isOnce ? withCount(config, 0) : config);
    }
    relaxation.prepare(once);
    for (std::size_t n = 0; n < next.size(); ++n) {
      Candidate &candidate = candidates[next[n]];
      boundByMicroBatch(candidate, once[n], bounds, relaxation);
      if (candidate.bound.value == kInfinity)
        exclude(candidate, Reason::pins); // no strategy is legal
    }
  }

  void solveAll(const std::vector<std::size_t> &next) { // may leave gaps
    std::vector<Answer> answers;
    for (std::size_t i : next) {
      const Candidate &one = candidates[i];
      answers.push_back({{},
                         rejectionOf(one.config, Reason::bound, one.bound),
                         {cutoffOf(one), 0}});
    }
    solveEach(answers);
    for (Answer &answer : answers)
      settle(std::move(answer));
  }

  void exclude(const Candidate &candidate, Reason reason) {
    Rejection rejection =
        rejectionOf(candidate.config, reason, candidate.bound);
    if (candidate.cuts)
      excludeCuts(candidate.config, *candidate.cuts, std::move(rejection));
    else
      settle({{}, std::move(rejection), {}});
  }

  void excludeCuts(const Parallelism &config, const OrderedCuts &ordered,
                   Rejection rejection) {
    const bool isWhole = ordered.layers.empty();
    if (isWhole && !cutsOf.contains(config.pp))
      cutsOf[config.pp] = unevenCuts(layersOf(model), config.pp);
    const std::vector<std::vector<int>> &cuts =
        isWhole ? cutsOf[config.pp] : ordered.layers;
    if (ordered.next == cuts.size())
      return;
    rejection.config = config;
    rejection = ofAllCuts(std::move(rejection), cuts, ordered.next, options);
    result.candidates += rejection.count;
    openBound = std::min(openBound, rejection.bound.value);
    result.rejections.push_back(std::move(rejection));
  }

  // Opens the configuration that recomputes the next larger number of layers if
  // memory limited this answer. Otherwise all larger numbers are rejected,
  // because recomputation only adds time.
  void recomputeMore(const Answer &answer) {
    const Parallelism &config =
        answer.planned ? answer.planned->config : answer.rejection.config;
    std::vector<int> counts = recomputeCounts(config, options);
    auto next = std::ranges::find(counts, countOf(config)) + 1;
    if (next == counts.end())
      return;
    if (answer.rejection.limited)
      return push(withCount(config, *next), {}, {});
    Rejection rest = answer.rejection;
    rest.count = counts.end() - next;
    rest.config = withCount(config, *next);
    rest.reason = answer.planned ? Reason::bound : rest.reason;
    result.rejections.push_back(std::move(rest));
  }

  void settle(Answer answer) {
    if (!closing)
      recomputeMore(answer);
    if (answer.planned && answer.planned->fits) {
      answer.planned->lowerBound =
          std::max(answer.planned->lowerBound, answer.rejection.bound);
      if (answer.planned->time.step.value <= pool.slowestAllowed()) {
        pool.add(std::move(*answer.planned));
        return;
      }
      answer.rejection.reason = Reason::bound;
      answer.rejection.bound = answer.planned->lowerBound;
    }
    bool mayFit = answer.rejection.reason == Reason::memory &&
                  answer.rejection.bound.value < kInfinity;
    if (mayFit && !closing) {
      unresolved.push_back(std::move(answer));
      return;
    }
    // A plan of this configuration may still fit, so the lower bound of the
    // space must not exceed the configuration's bound.
    if (answer.rejection.reason != Reason::pins)
      openBound = std::min(openBound, answer.rejection.bound.value);
    if (answer.planned &&
        (!result.nearest || isNearer(*answer.planned, *result.nearest)))
      result.nearest = std::move(answer.planned);
    result.rejections.push_back(std::move(answer.rejection));
  }

  // Retries the configurations for which no plan that fits was found: first
  // with more points (SolveLimits), then by trying all plans.
  void retryUnresolved() {
    closing = true;
    std::ranges::stable_sort(unresolved, {}, [](const Answer &answer) {
      return answer.rejection.bound.value;
    });
    for (Answer &answer : unresolved) {
      for (std::int64_t points : {kFewPoints, kManyPoints}) {
        const Rejection &last = answer.rejection;
        if (last.bound.value >= cutoffOf(last.config) || isStopped())
          break;
        std::vector<Answer> again{{{}, last, {kInfinity, points}}};
        solveEach(again);
        if (again[0].planned && again[0].planned->fits) {
          answer = std::move(again[0]);
          break;
        }
      }
      Rejection &last = answer.rejection;
      if ((!answer.planned || !answer.planned->fits) && !isStopped())
        if (std::optional<PlannedCandidate> plan = fastestOfAll(
                model, options, machine, {cutoffOf(last.config)}, last))
          answer.planned = std::move(plan);
      settle(std::move(answer));
    }
  }

  // Closes gaps as long as the lower bound of a solved configuration is below
  // the best time: first with more points (SolveLimits), then by trying all
  // plans.
  void closeGaps() {
    while (!isStopped()) {
      const PlanPool::Gaps gaps = pool.nextGaps(kAtOnce);
      if (gaps.plans.empty())
        break;
      std::vector<Answer> answers;
      for (std::size_t i : gaps.plans) {
        const PlannedCandidate &plan = pool.plans()[i];
        answers.push_back(
            {{},
             rejectionOf(plan.config, Reason::bound, plan.lowerBound),
             {pool.best(), gaps.points}});
      }
      solveEach(answers);
      for (std::size_t i = 0; i < answers.size(); ++i)
        pool.narrow(gaps.plans[i], std::move(answers[i].planned),
                    answers[i].rejection.bound);
    }
    for (std::size_t i = 0; i < pool.plans().size() && !isStopped(); ++i)
      if (const PlannedCandidate &plan = pool.plans()[i]; pool.hasGap(i)) {
        Rejection last =
            rejectionOf(plan.config, Reason::bound, plan.lowerBound);
        std::optional<PlannedCandidate> fastest =
            fastestOfAll(model, options, machine, {pool.best()}, last);
        pool.narrow(i, std::move(fastest), last.bound);
      }
  }

  void conclude() {
    std::vector<PlannedCandidate> plans = pool.take();
    for (const PlannedCandidate &plan : plans)
      openBound = std::min(openBound, plan.lowerBound.value);
    result.lowerBound = {openBound};
    result.optimal = !plans.empty() &&
                     plans.front().time.step.value <= openBound * (1 + 1e-9);
    result.solved = std::ssize(plans);
    static_cast<RejectionCounts &>(result) = countsOf(result.rejections);
    if (options.tolerance > 0.0)
      result.faster = preferSimplest(plans, model, machine, options);
    for (std::size_t i = at(options.top); i < plans.size(); ++i)
      result.rejections.push_back(
          rejectionOf(plans[i].config, Reason::bound, plans[i].lowerBound));
    if (std::ssize(plans) > options.top)
      plans.resize(at(options.top));
    result.plans = std::move(plans);
    if (!result.plans.empty())
      result.nearest.reset();
  }

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  Bounds bounds;
  Relaxation relaxation;
  std::vector<Candidate> candidates;
  /// These hold the bounds and indices of candidates; `later` is for the second
  /// pass.
  std::set<std::pair<double, std::size_t>> open;
  std::set<std::pair<double, std::size_t>> later;
  bool isFirstPass = true;
  std::vector<std::size_t> ready; ///< indices of candidates to solve next
  std::array<StageCache, kThreads> caches;             ///< one per thread
  std::map<int, std::vector<std::vector<int>>> cutsOf; ///< by stages
  std::vector<Answer> unresolved; ///< answers without a plan that fits so far
  bool closing = false;           ///< whether branch and bound is over
  PlanPool pool;                  ///< plans that fit
  double openBound = kInfinity;   ///< lower bound of all plans that fit
  SearchResult result;
};

} // namespace

SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options) {
  return Search(model, machine, options).run();
}

} // namespace mtplan::planner
