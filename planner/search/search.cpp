//===- search.cpp - The outer search --------------------------------------===//

#include "planner/search/search.h"

#include <algorithm>
#include <array>
#include <future>
#include <limits>

#include "planner/search/bounds.h"
#include "planner/search/enumerate.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kManyPoints = 4'000'000;
constexpr std::size_t kAtOnce = 2;

struct Candidate {
  Parallelism how;
  Seconds bound;
  std::vector<BoundaryFloor> boundaries; ///< best first
};

class Search {
public:
  Search(const ModelGraph &m, const Machine &on, const SearchOptions &o)
      : model(m), machine(on), options(o), bounds(m, on, o) {}

  SearchResult run() {
    for (const Parallelism &how :
         enumerateSpace(model, options, result.rejections))
      add(how);
    // Best bound first; equal bounds in the order of enumeration.
    std::ranges::stable_sort(candidates, {}, [](const Candidate &candidate) {
      return candidate.bound.value;
    });
    for (std::size_t i = 0; i < candidates.size();)
      i = consider(i);
    tryDoubtful();
    closeGaps();
    conclude();
    return std::move(result);
  }

private:
  void add(const Parallelism &how) {
    ++result.candidates;
    Candidate candidate{how, {}, {}};
    Bytes floor = bounds.memory(how);
    if (floor > machine.device.memory) {
      ++result.pruned;
      result.rejections.push_back(
          {how, Rejection::Reason::memory, {kNever}, floor, true, {}});
      return;
    }
    candidate.bound = pipelineFloor(bounds.compute(how), how);
    candidates.push_back(candidate);
  }

  // Slower than this, a plan does not enter the list.
  double bar() const {
    auto top = static_cast<std::size_t>(options.top);
    if (pool.size() < top)
      return kNever;
    std::vector<double> times;
    for (const PlannedCandidate &planned : pool)
      times.push_back(planned.time.step.value);
    std::ranges::nth_element(times, times.begin() +
                                        static_cast<std::ptrdiff_t>(top) - 1);
    return times[top - 1];
  }

  std::optional<PlannedCandidate>
  solve(const Parallelism &how, const std::vector<BoundaryFloor> &boundaries,
        SolveLimits limits, std::size_t worker, Rejection &rejection) {
    return solveCandidate(withBatch(model, how.microBatch * how.dp), options,
                          machine, how, boundaries, limits, caches[worker],
                          rejection);
  }

  // The tighter bound, of every layout that values between stages may have.
  void tighten(Candidate &candidate) {
    const Parallelism &how = candidate.how;
    Seconds least{kNever};
    for (std::optional<int> boundary : boundariesOf(model, how)) {
      Seconds floor = pipelineFloor(bounds.through(how, boundary), how);
      if (floor.value < kNever)
        candidate.boundaries.push_back({boundary, floor});
      least = std::min(least, floor);
    }
    std::ranges::stable_sort(
        candidate.boundaries, {},
        [](const BoundaryFloor &one) { return one.floor.value; });
    if (!candidate.boundaries.empty())
      candidate.bound = std::max(candidate.bound, least);
  }

  /// What came of one candidate.
  struct Answer {
    std::optional<PlannedCandidate> planned;
    Rejection rejection;
  };

  // First pass: a bound and a good plan of the next candidates, nothing spent
  // on the gap between the two. As many at once whatever the machine, all
  // against the bar as it was before, so that the outcome is a function of the
  // input. Returns the position of the first that was not looked at.
  std::size_t consider(std::size_t first) {
    double limit = bar();
    std::vector<std::size_t> open;
    std::size_t i = first;
    for (; i < candidates.size() && open.size() < kAtOnce; ++i) {
      Candidate &candidate = candidates[i];
      // Worth the tighter bound only where the first does not do.
      Rejection::Reason reason = Rejection::Reason::bound;
      if (candidate.bound.value < limit) {
        tighten(candidate);
        if (candidate.boundaries.empty()) // nothing is legal
          reason = Rejection::Reason::pins;
      }
      if (candidate.bound.value < limit && !candidate.boundaries.empty())
        open.push_back(i);
      else
        take({{}, {candidate.how, reason, candidate.bound, {}, false, {}}});
    }
    auto answer = [&](std::size_t slot) {
      const Candidate &candidate = candidates[open[slot]];
      Answer one{{},
                 {candidate.how,
                  Rejection::Reason::bound,
                  candidate.bound,
                  {},
                  false,
                  {}}};
      one.planned = solve(candidate.how, candidate.boundaries, {limit, 0}, slot,
                          one.rejection);
      return one;
    };
    std::vector<std::future<Answer>> others;
    for (std::size_t slot = 1; slot < open.size(); ++slot)
      others.push_back(std::async(std::launch::async, answer, slot));
    if (!open.empty())
      take(answer(0));
    for (std::future<Answer> &other : others)
      take(other.get());
    return i;
  }

  void take(Answer answer) {
    if (answer.planned && answer.planned->fits) {
      answer.planned->lowerBound =
          std::max(answer.planned->lowerBound, answer.rejection.bound);
      pool.push_back(std::move(*answer.planned));
      return;
    }
    bool mayFit = answer.rejection.reason == Rejection::Reason::memory &&
                  answer.rejection.bound.value < kNever;
    if (mayFit && !closing) {
      doubtful.push_back(std::move(answer));
      return;
    }
    if (answer.rejection.reason == Rejection::Reason::bound)
      ++result.pruned;
    // A candidate that room for its workspace could not be made for may still
    // hold a plan that needs less of it: its bound alone says how fast.
    if (answer.rejection.reason != Rejection::Reason::pins)
      openBound = std::min(openBound, answer.rejection.bound.value);
    if (answer.planned &&
        (!result.nearest ||
         answer.planned->memory.total() < result.nearest->memory.total()))
      result.nearest = std::move(answer.planned);
    result.rejections.push_back(std::move(answer.rejection));
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
      if (answer.rejection.bound.value < bar()) {
        Rejection again = answer.rejection;
        std::optional<PlannedCandidate> planned =
            solve(again.how, boundariesFor(again.how), {kNever, kManyPoints}, 0,
                  again);
        if (planned && planned->fits)
          answer = {std::move(planned), std::move(again)};
      }
      take(std::move(answer));
    }
  }

  // Second pass: while some candidate might still hold a faster plan than the
  // fastest, close the gap of the one with the lowest bound.
  void closeGaps() {
    std::vector<bool> tried(pool.size(), false);
    while (!pool.empty()) {
      double best = fastest().time.step.value;
      std::size_t next = pool.size();
      for (std::size_t i = 0; i < pool.size(); ++i)
        if (!tried[i] && !pool[i].optimal &&
            pool[i].lowerBound.value < best * (1 - 1e-9) &&
            (next == pool.size() || pool[i].lowerBound < pool[next].lowerBound))
          next = i;
      if (next == pool.size())
        return;
      tried[next] = true;
      PlannedCandidate &open = pool[next];
      Seconds known = open.lowerBound;
      Rejection rejection;
      rejection.bound = known;
      std::optional<PlannedCandidate> closed = solve(
          open.how, boundariesFor(open.how), {best, kManyPoints}, 0, rejection);
      // Given up: no plan there beats the best, which is all that matters.
      if (!closed || !closed->fits)
        open.lowerBound = std::max(open.lowerBound, rejection.bound);
      else if (closed->optimal || closed->time.step <= open.time.step)
        open = std::move(*closed);
      else
        open.lowerBound = closed->lowerBound;
      open.lowerBound = std::max(open.lowerBound, known);
    }
  }

  std::vector<BoundaryFloor> boundariesFor(const Parallelism &how) {
    Candidate candidate{how, {}, {}};
    tighten(candidate);
    return candidate.boundaries;
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
  std::vector<Candidate> candidates;
  std::array<StageCache, kAtOnce> caches;
  std::vector<Answer> doubtful;       ///< too large, but not shown to be
  bool closing = false;               ///< the first pass is over
  std::vector<PlannedCandidate> pool; ///< that fit, in the order solved
  /// No plan of what was solved, or may fit after all, is faster.
  double openBound = kNever;
  SearchResult result;
};

} // namespace

Setting settingOf(const SearchOptions &options, const Machine &machine,
                  const Parallelism &how) {
  Setting setting;
  setting.mesh = meshOf(how);
  for (const MeshAxis &axis : setting.mesh.axes)
    switch (roleOf(axis)) {
    case AxisRole::data: // replicas differ in their samples and in nothing else
      setting.rules.push_back({{Split::batch}, false});
      break;
    case AxisRole::expert:
      setting.rules.push_back({{Split::expert, Split::batch}, false});
      break;
    case AxisRole::context:
      setting.rules.push_back({{Split::sequence}, false});
      break;
    case AxisRole::tensor:
      setting.rules.push_back({options.tensorSplits, true});
      // Splits that follow from others are no choice of their own.
      setting.rules.back().splits.push_back(Split::feature);
      break;
    }
  setting.microBatches = how.microBatches();
  setting.devices = options.devices;
  setting.zeroStage = how.zeroStage;
  setting.recompute = how.recompute;
  setting.recomputeShare = recomputeShareOf(how);
  setting.machine = &machine;
  setting.software = options.software;
  setting.precision = options.precision;
  setting.pins = options.pins;
  return setting;
}

SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options) {
  return Search(model, machine, options).run();
}

} // namespace mtplan::planner
