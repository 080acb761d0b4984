//===- search.cpp - The outer search --------------------------------------===//

#include "planner/search/search.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>

#include "planner/search/bounds.h"
#include "planner/search/candidate.h"
#include "planner/search/enumerate.h"
#include "planner/search/floors.h"
#include "planner/search/together.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kManyPoints = 4'000'000;
// Solved against one bar, and by how many threads; better known at once.
constexpr std::size_t kAtOnce = 4, kThreads = 2, kPrepared = 512;

class Search {
public:
  Search(const ModelGraph &m, const Machine &on, const SearchOptions &o)
      : model(m), machine(on), options(o), bounds(m, on, o),
        leastTimes(m, on, o) {}

  SearchResult run() {
    for (const Parallelism &how :
         enumerateSpace(model, machine, options, result.rejections)) {
      add(how, {});
      if (isCutAnyhow(how, options))
        addCuts(how);
    }
    while (!open.empty() && open.begin()->first < bar() && !isStopped())
      consider();
    double limit = bar();
    for (auto [bound, i] : open)
      exclude(candidates[i], bound < limit ? Rejection::Reason::budget
                                           : Rejection::Reason::bound);
    tryDoubtful();
    closeGaps();
    conclude();
    return std::move(result);
  }

private:
  // Of candidates that recompute more and more, the first that may fit.
  // `atLeast` is known to bound all of them.
  void add(const Parallelism &how, Seconds atLeast) {
    std::vector<int> counts = recomputeCounts(how, options);
    result.candidates += std::ssize(counts);
    if (Bytes onHost = bounds.hostMemory(how);
        onHost > hostShareOf(machine, options.devices))
      return excludeAll(how, std::ssize(counts), Rejection::Reason::host,
                        onHost);
    auto needed = [&](int count) {
      return bounds.memory(withCount(how, count));
    };
    if (Bytes floor = needed(counts.back()); floor > machine.device.memory)
      return excludeAll(withCount(how, counts.back()), std::ssize(counts),
                        Rejection::Reason::memory, floor);
    auto first = std::ranges::partition_point(counts, [&](int count) {
      return needed(count) > machine.device.memory;
    });
    if (first != counts.begin())
      excludeAll(withCount(how, first[-1]), first - counts.begin(),
                 Rejection::Reason::memory, needed(first[-1]));
    openUp(withCount(how, *first), atLeast, {});
  }

  // As no plan of these has room.
  void excludeAll(const Parallelism &how, std::int64_t count,
                  Rejection::Reason reason, Bytes floor) {
    Rejection rejection{how, reason, {kNever}, floor, true, {}};
    rejection.count = count;
    result.rejections.push_back(std::move(rejection));
  }

  void openUp(Parallelism how, Seconds atLeast,
              std::optional<OrderedCuts> cuts) {
    Seconds bound = std::max(atLeast, pipelineFloor(bounds.compute(how), how));
    open.emplace(bound.value, candidates.size());
    candidates.push_back(
        {std::move(how), bound, Candidate::Known::work, {}, std::move(cuts)});
  }

  // All uneven cuts of one candidate, until one is looked at. How many layers
  // recompute depends on the cut, unless all or none do.
  void addCuts(const Parallelism &how) {
    std::vector<int> counts = recomputeCounts(how, options);
    auto floorOf = [&](int count) {
      return bounds.memoryOfAnyCut(withCount(how, count));
    };
    auto fits = std::ranges::find_if(counts, [&](int count) {
      return floorOf(count) <= machine.device.memory;
    });
    if (fits == counts.end())
      return excludeCuts(how, {},
                         {{},
                          Rejection::Reason::memory,
                          {kNever},
                          floorOf(counts.back()),
                          true,
                          {}});
    bool counted = isCounted(options) && how.recompute != Recompute::selective;
    openUp(withCount(how, counted ? 0 : *fits), {}, OrderedCuts{});
  }

  bool isStopped() const {
    return !pool.empty() && options.stop && options.stop();
  }

  // Slower than this, a plan does not enter the list.
  double bar() const {
    auto top = static_cast<std::size_t>(options.top);
    if (pool.size() < top)
      return slowest();
    std::vector<double> times;
    for (const PlannedCandidate &planned : pool)
      times.push_back(planned.time.step.value);
    std::ranges::nth_element(times, times.begin() +
                                        static_cast<std::ptrdiff_t>(top) - 1);
    return times[top - 1];
  }

  // A step of just what is asked for is fast enough.
  double slowest() const { return options.atMost.value * (1 + 1e-9); }

  std::optional<PlannedCandidate> solve(const Parallelism &how,
                                        std::vector<Seconds> around,
                                        SolveLimits limits, std::size_t slot,
                                        Rejection &rejection) {
    ModelGraph graph = withBatch(model, how.microBatch * how.dp);
    CandidateFloors floors{{}, std::move(around)};
    for (std::optional<int> boundary : boundariesOf(graph, how))
      floors.boundaries.push_back({boundary, rejection.bound});
    return solveCandidate(graph, options, machine, how, floors, limits,
                          caches[slot % kThreads], rejection);
  }

  std::vector<Seconds> around(const Parallelism &how) {
    leastTimes.prepare({how});
    return leastTimes.stepOf(how).around;
  }

  /// What came of one candidate.
  struct Answer {
    std::optional<PlannedCandidate> planned;
    Rejection rejection;
  };

  // The candidate with the least bound, and those after it of which as much is
  // known, become better known, or are solved. As many at once whatever the
  // machine, all against the bar as it was before, so that the outcome is a
  // function of the input. Equal bounds in the order of enumeration.
  void consider() {
    double limit = bar();
    Candidate::Known known = candidates[open.begin()->second].known;
    if (candidates[open.begin()->second].isCut())
      return considerCuts();
    bool simple = known < Candidate::Known::floors;
    std::size_t many = simple ? kPrepared : kAtOnce;
    std::vector<std::size_t> next;
    while (!open.empty() && next.size() < many && open.begin()->first < limit &&
           candidates[open.begin()->second].known == known &&
           !candidates[open.begin()->second].isCut()) {
      next.push_back(open.begin()->second);
      open.erase(open.begin());
    }
    if (known == Candidate::Known::step)
      return solveAll(next, limit);
    if (known == Candidate::Known::work)
      boundByMicroBatch(next, Candidate::Known::computedOnce);
    else if (known == Candidate::Known::computedOnce)
      boundByMicroBatch(next, Candidate::Known::microBatch);
    else if (known == Candidate::Known::microBatch)
      boundByFloors(next);
    else
      shareOut(next.size(), [&](std::size_t i) { simulateFloors(next[i]); });
    for (std::size_t i : next)
      if (candidates[i].bound.value < kNever)
        open.emplace(candidates[i].bound.value, i);
  }

  // The most promising of uneven cuts becomes a candidate of its own.
  void considerCuts() {
    std::size_t index = open.begin()->second;
    open.erase(open.begin());
    if (candidates[index].cuts->layers.empty()) {
      const Parallelism &how = candidates[index].how;
      leastTimes.prepare({how});
      candidates[index].cuts = orderedCuts(how, leastTimes.layerTimes(how));
    } else {
      Parallelism how = candidates[index].how;
      OrderedCuts &cuts = *candidates[index].cuts;
      how.layers = cuts.layers[cuts.next];
      std::vector<int> counts = recomputeCounts(how, options);
      Seconds bound = std::max(candidates[index].bound, cuts.bounds[cuts.next]);
      ++cuts.next;
      add(withCount(how, counts.front()), bound);
    }
    Candidate &candidate = candidates[index];
    const OrderedCuts &cuts = *candidate.cuts;
    if (cuts.next == cuts.layers.size())
      return;
    candidate.bound = std::max(candidate.bound, cuts.bounds[cuts.next]);
    open.emplace(candidate.bound.value, index);
  }

  // What is computed again comes on top of the same plan computed once.
  void boundByMicroBatch(const std::vector<std::size_t> &next,
                         Candidate::Known known) {
    std::vector<Parallelism> once;
    once.reserve(next.size());
    for (std::size_t i : next) {
      once.push_back(candidates[i].how);
      if (known == Candidate::Known::computedOnce)
        once.back() = withCount(once.back(), 0);
    }
    leastTimes.prepare(once);
    for (std::size_t n = 0; n < next.size(); ++n) {
      Candidate &candidate = candidates[next[n]];
      const Parallelism &how = candidate.how;
      Seconds floor = leastTimes.microBatchOf(once[n]) +
                      (bounds.compute(how) - bounds.compute(once[n]));
      candidate.bound = std::max(candidate.bound, pipelineFloor(floor, how));
      candidate.known = how.recompute == once[n].recompute
                            ? Candidate::Known::microBatch
                            : Candidate::Known::computedOnce;
      if (candidate.bound.value == kNever)
        exclude(candidate, Rejection::Reason::pins); // nothing is legal
    }
  }

  void boundByFloors(const std::vector<std::size_t> &next) {
    for (std::size_t i : next) {
      Candidate &candidate = candidates[i];
      Floors::StepFloor floor = leastTimes.stepOf(candidate.how);
      candidate.bound = std::max(candidate.bound, floor.quick);
      candidate.floors = std::move(floor.problem);
      candidate.known =
          candidate.floors ? Candidate::Known::floors : Candidate::Known::step;
    }
  }

  void simulateFloors(std::size_t index) {
    Candidate &candidate = candidates[index];
    candidate.bound =
        std::max(candidate.bound, stepSecondsOf(std::move(*candidate.floors)));
    candidate.floors.reset();
    candidate.known = Candidate::Known::step;
  }

  // Each slot is always the same thread's, whichever is done first: what it
  // finds in its cache is a function of the input, too.
  template <typename Work> static void shareOut(std::size_t slots, Work work) {
    together(std::min(slots, kThreads), [&](std::size_t thread) {
      for (std::size_t slot = thread; slot < slots; slot += kThreads)
        work(slot);
    });
  }

  // A bound and a good plan of each, nothing spent on the gap between the two.
  void solveAll(const std::vector<std::size_t> &next, double limit) {
    std::vector<Answer> answers(next.size());
    std::vector<std::vector<Seconds>> aroundOf;
    aroundOf.reserve(next.size());
    for (std::size_t i : next)
      aroundOf.push_back(around(candidates[i].how));
    shareOut(next.size(), [&](std::size_t slot) {
      const Candidate &candidate = candidates[next[slot]];
      Answer &one = answers[slot];
      one.rejection.how = candidate.how;
      one.rejection.reason = Rejection::Reason::bound;
      one.rejection.bound = candidate.bound;
      one.planned =
          solve(candidate.how, aroundOf[slot], {limit, 0}, slot, one.rejection);
    });
    for (Answer &answer : answers)
      take(std::move(answer));
  }

  void exclude(const Candidate &candidate, Rejection::Reason reason) {
    Rejection rejection{candidate.how, reason, candidate.bound, {}, false, {}};
    if (candidate.cuts)
      excludeCuts(candidate.how, *candidate.cuts, std::move(rejection));
    else
      take({{}, std::move(rejection)});
  }

  // The first that was not looked at stands for all of those.
  void excludeCuts(const Parallelism &how, const OrderedCuts &ordered,
                   Rejection rejection) {
    std::vector<std::vector<int>> left(
        ordered.layers.begin() + static_cast<std::ptrdiff_t>(ordered.next),
        ordered.layers.end());
    if (ordered.layers.empty())
      left = unevenCuts(layersOf(model), how.pp);
    if (left.empty())
      return;
    rejection.count = 0;
    rejection.how = how;
    for (auto cut = left.rbegin(); cut != left.rend(); ++cut) {
      rejection.how.layers = std::move(*cut);
      std::vector<int> counts = recomputeCounts(rejection.how, options);
      rejection.count += std::ssize(counts);
      // Who recomputes most needs least, who does least is the fastest.
      rejection.how = withCount(
          rejection.how, rejection.isFloor ? counts.back() : counts.front());
    }
    result.candidates += rejection.count;
    openBound = std::min(openBound, rejection.bound.value);
    result.rejections.push_back(std::move(rejection));
  }

  // To recompute more makes room at the cost of time: of no use where there was
  // room enough, or where less was too slow.
  void follow(const Answer &answer) {
    const Parallelism &how =
        answer.planned ? answer.planned->how : answer.rejection.how;
    std::vector<int> counts = recomputeCounts(how, options);
    auto next = std::ranges::find(counts, countOf(how)) + 1;
    if (next == counts.end())
      return;
    if (answer.rejection.limited)
      return openUp(withCount(how, *next), {}, {});
    Rejection rest = answer.rejection;
    rest.count = counts.end() - next;
    rest.how = withCount(how, *next);
    rest.reason = answer.planned ? Rejection::Reason::bound : rest.reason;
    result.rejections.push_back(std::move(rest));
  }

  void take(Answer answer) {
    if (!closing)
      follow(answer);
    if (answer.planned && answer.planned->fits) {
      answer.planned->lowerBound =
          std::max(answer.planned->lowerBound, answer.rejection.bound);
      if (answer.planned->time.step.value <= slowest()) {
        pool.push_back(std::move(*answer.planned));
        return;
      }
      answer.rejection.reason = Rejection::Reason::bound;
      answer.rejection.bound = answer.planned->lowerBound;
    }
    bool mayFit = answer.rejection.reason == Rejection::Reason::memory &&
                  answer.rejection.bound.value < kNever;
    if (mayFit && !closing) {
      doubtful.push_back(std::move(answer));
      return;
    }
    // A candidate that room for its workspace could not be made for may still
    // hold a plan that needs less of it: its bound alone says how fast.
    if (answer.rejection.reason != Rejection::Reason::pins)
      openBound = std::min(openBound, answer.rejection.bound.value);
    if (answer.planned &&
        (!result.nearest || isNearer(*answer.planned, *result.nearest)))
      result.nearest = std::move(answer.planned);
    result.rejections.push_back(std::move(answer.rejection));
  }

  static bool isNearer(const PlannedCandidate &a, const PlannedCandidate &b) {
    if (a.fits != b.fits)
      return a.fits;
    return a.fits ? a.time.step < b.time.step
                  : a.memory.total() < b.memory.total();
  }

  const PlannedCandidate &fastest() const {
    return *std::ranges::min_element(pool, {},
                                     [](const PlannedCandidate &planned) {
                                       return planned.time.step.value;
                                     });
  }

  // Candidates that did not fit with the gap open may do with it closed.
  void tryDoubtful() {
    closing = true;
    std::ranges::stable_sort(doubtful, {}, [](const Answer &answer) {
      return answer.rejection.bound.value;
    });
    for (Answer &answer : doubtful) {
      if (answer.rejection.bound.value < bar() && !isStopped()) {
        Rejection again = answer.rejection;
        std::optional<PlannedCandidate> planned = solve(
            again.how, around(again.how), {kNever, kManyPoints}, 0, again);
        if (planned && planned->fits)
          answer = {std::move(planned), std::move(again)};
      }
      take(std::move(answer));
    }
  }

  // Second pass: while some candidates might still hold a faster plan than the
  // fastest, close the gaps of those with the lowest bounds.
  void closeGaps() {
    std::vector<bool> tried(pool.size(), false);
    while (!pool.empty() && !isStopped()) {
      const double best = fastest().time.step.value;
      std::vector<std::size_t> next;
      for (std::size_t i = 0; i < pool.size(); ++i)
        if (!tried[i] && !pool[i].optimal && !pool[i].isLeastSum &&
            pool[i].lowerBound.value < best * (1 - 1e-9))
          next.push_back(i);
      std::ranges::stable_sort(
          next, {}, [&](std::size_t i) { return pool[i].lowerBound.value; });
      next.resize(std::min(next.size(), kAtOnce));
      if (next.empty())
        return;
      std::vector<Answer> answers(next.size());
      std::vector<std::vector<Seconds>> aroundOf;
      aroundOf.reserve(next.size());
      for (std::size_t i : next)
        aroundOf.push_back(around(pool[i].how));
      shareOut(next.size(), [&](std::size_t slot) {
        const PlannedCandidate &gap = pool[next[slot]];
        answers[slot].rejection.bound = gap.lowerBound;
        answers[slot].planned =
            solve(gap.how, aroundOf[slot], {best, kManyPoints}, slot,
                  answers[slot].rejection);
      });
      for (std::size_t slot = 0; slot < next.size(); ++slot) {
        tried[next[slot]] = true;
        narrow(pool[next[slot]], std::move(answers[slot]));
      }
    }
  }

  static void narrow(PlannedCandidate &gap, Answer answer) {
    Seconds known = gap.lowerBound;
    std::optional<PlannedCandidate> &closed = answer.planned;
    // Given up: no plan there beats the best, which is all that matters.
    if (!closed || !closed->fits)
      gap.lowerBound = answer.rejection.bound;
    else if (closed->optimal || closed->time.step <= gap.time.step)
      gap = std::move(*closed);
    else
      gap.lowerBound = closed->lowerBound;
    gap.lowerBound = std::max(gap.lowerBound, known);
  }

  void conclude() {
    std::ranges::stable_sort(pool, {}, [](const PlannedCandidate &planned) {
      return planned.time.step.value;
    });
    for (const PlannedCandidate &planned : pool)
      openBound = std::min(openBound, planned.lowerBound.value);
    result.lowerBound = {openBound};
    result.optimal =
        !pool.empty() && pool.front().time.step.value <= openBound * (1 + 1e-9);
    countCandidates(result, std::ssize(pool));
    // What does not enter the list is still accounted for.
    for (std::size_t i = static_cast<std::size_t>(options.top); i < pool.size();
         ++i)
      result.rejections.push_back({pool[i].how,
                                   Rejection::Reason::bound,
                                   pool[i].lowerBound,
                                   {},
                                   false,
                                   {}});
    if (static_cast<int>(pool.size()) > options.top)
      pool.resize(static_cast<std::size_t>(options.top));
    result.plans = std::move(pool);
    if (!result.plans.empty())
      result.nearest.reset();
  }

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  Bounds bounds;
  Floors leastTimes;
  std::vector<Candidate> candidates;
  std::set<std::pair<double, std::size_t>> open; ///< by bound; candidates
  std::array<StageCache, kThreads> caches;       ///< one per thread
  std::vector<Answer> doubtful;       ///< too large, but not shown to be
  bool closing = false;               ///< the first pass is over
  std::vector<PlannedCandidate> pool; ///< that fit, in the order solved
  /// No plan of what was solved, or may fit after all, is faster.
  double openBound = kNever;
  SearchResult result;
};

} // namespace

SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options) {
  return Search(model, machine, options).run();
}

} // namespace mtplan::planner
