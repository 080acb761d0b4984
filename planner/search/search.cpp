//===- search.cpp - The outer search: mesh and micro-batch ----------------===//

#include "planner/search/search.h"

#include <algorithm>
#include <array>
#include <future>
#include <limits>

#include "planner/cost/compute_cost.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::int64_t kManyPoints = 4'000'000;
constexpr std::size_t kAtOnce = 2;

struct Candidate {
  int dp = 1, tp = 1;
  std::int64_t microBatch = 1;
  Seconds bound;
};

// Dimensions that a split over `tp` would have to divide and does not. Whoever
// asks for a degree by name expects the split that goes with it; left free, the
// other splits may still make it worth while.
std::string violatedDivisor(const SearchOptions &options, int tp) {
  if (!options.tp)
    return {};
  for (const Divisor &divisor : options.divisors)
    if (divisor.size % tp != 0 &&
        std::ranges::find(options.tensorSplits, divisor.split) !=
            options.tensorSplits.end())
      return std::to_string(divisor.size) + " " + divisor.name;
  return {};
}

std::vector<std::int64_t> divisorsOf(std::int64_t number) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= number; ++d)
    if (number % d == 0) {
      low.push_back(d);
      if (d * d != number)
        high.push_back(number / d);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

// No plan of these ranks is faster: the work spread evenly over all of them.
Seconds computeBound(const ModelGraph &graph, const Candidate &candidate,
                     std::int64_t microBatches, const Machine &machine,
                     Precision precision) {
  Seconds bound;
  int ranks = candidate.dp * candidate.tp;
  for (const SegmentGraph &segment : graph.segments)
    for (const Op &op : segment.ops)
      bound += computeFloor(op, segment.tensors, ranks, machine, precision) *
               segment.repeat;
  return bound * static_cast<double>(microBatches);
}

// The least any plan saves from forward to backward: every value that both
// halves touch, split over all ranks; and the inputs.
Bytes activationFloor(const ModelGraph &graph, int ranks) {
  double bytes = 0.0;
  for (const SegmentGraph &segment : graph.segments) {
    std::vector<bool> saved(segment.tensors.size(), false);
    for (const Op &op : segment.ops)
      for (const Use &use : op.operands) {
        const Tensor &tensor =
            segment.tensors[static_cast<std::size_t>(use.tensor)];
        if (op.phase == Phase::backward && tensor.phase == Phase::forward &&
            tensor.kind == TensorKind::activation)
          saved[static_cast<std::size_t>(use.tensor)] = true;
      }
    for (std::size_t t = 0; t < saved.size(); ++t) {
      bool input = segment.tensors[t].kind == TensorKind::input;
      if (!saved[t] && !input)
        continue;
      double size = segment.tensors[t].elementBytes;
      for (std::int64_t extent : segment.tensors[t].shape)
        size *= static_cast<double>(extent);
      bytes += size * (input ? 1 : segment.repeat) / ranks;
    }
  }
  return {bytes};
}

// The least any plan holds: every parameter split over all tensor ranks.
Bytes memoryFloor(const ModelGraph &model, int tp, Precision precision,
                  const Machine &machine) {
  StateBytes state = stateBytesOf(precision);
  double bytes = 0.0;
  for (const Parameter &parameter : model.parameters) {
    double elements = parameter.copies;
    for (std::int64_t size : parameter.shape)
      elements *= static_cast<double>(size);
    bytes += elements / tp *
             (parameter.elementBytes + state.gradient + state.optimizer);
  }
  return Bytes{bytes} + machine.device.reserved;
}

class Search {
public:
  Search(const ModelGraph &m, const Machine &on, const SearchOptions &o)
      : model(m), machine(on), options(o) {}

  SearchResult run() {
    enumerate();
    // Best bound first; equal bounds in the order of enumeration.
    std::ranges::stable_sort(candidates, {}, [](const Candidate &candidate) {
      return candidate.bound.value;
    });
    for (std::size_t i = 0; i < candidates.size(); i += kAtOnce)
      consider(i, std::min(i + kAtOnce, candidates.size()));
    closeGaps();
    conclude();
    return std::move(result);
  }

private:
  void enumerate() {
    for (int tp = 1; tp <= options.devices; ++tp) {
      if (options.devices % tp != 0)
        continue;
      int dp = options.devices / tp;
      if ((options.tp && *options.tp != tp) ||
          (options.dp && *options.dp != dp))
        continue;
      if (tp == 1 && splitsArePinned() && mayBeSplit()) {
        reject({dp, tp, 0, {}}, Rejection::Reason::pins,
               "a pin asks for a split, and tp 1 splits nothing");
        continue;
      }
      std::string violated = violatedDivisor(options, tp);
      if (!violated.empty()) {
        reject({dp, tp, 0, {}}, Rejection::Reason::divisor,
               violated + " do not divide by tp " + std::to_string(tp));
        continue;
      }
      if (options.globalBatch % dp != 0) {
        reject({dp, tp, 0, {}}, Rejection::Reason::divisor,
               "global batch " + std::to_string(options.globalBatch) +
                   " does not divide by dp " + std::to_string(dp));
        continue;
      }
      std::int64_t perReplica = options.globalBatch / dp;
      for (std::int64_t b : divisorsOf(perReplica))
        if (!options.microBatch || *options.microBatch == b)
          add({dp, tp, b, {}});
    }
  }

  // Whether a pin says what the tensor axis must divide.
  bool splitsArePinned() const {
    if (!options.pins)
      return false;
    for (const auto &segment : options.pins->ops)
      for (const std::string &word : segment)
        if (!word.empty() && word != "replicated")
          return true;
    for (const auto &pin : options.pins->parameters)
      if (pin && std::ranges::find(*pin, "tp") != pin->end())
        return true;
    return false;
  }

  // Whether nobody asked for a mesh without a tensor axis.
  bool mayBeSplit() const {
    return options.devices > 1 && !options.tp &&
           (!options.dp || *options.dp < options.devices);
  }

  void add(Candidate candidate) {
    ++result.candidates;
    ModelGraph graph = withBatch(model, candidate.microBatch * candidate.dp);
    Bytes floor = memoryFloor(model, candidate.tp, options.precision, machine) +
                  activationFloor(graph, candidate.dp * candidate.tp);
    if (floor > machine.device.memory) {
      ++result.pruned;
      Rejection &rejection = reject(candidate, Rejection::Reason::memory, {});
      rejection.needed = floor;
      rejection.isFloor = true;
      return;
    }
    candidate.bound = computeBound(graph, candidate, microBatchesOf(candidate),
                                   machine, options.precision);
    candidates.push_back(candidate);
  }

  std::int64_t microBatchesOf(const Candidate &candidate) const {
    return options.globalBatch / candidate.dp / candidate.microBatch;
  }

  Rejection &reject(const Candidate &candidate, Rejection::Reason reason,
                    std::string detail) {
    result.rejections.push_back({candidate.dp,
                                 candidate.tp,
                                 candidate.microBatch,
                                 reason,
                                 candidate.bound,
                                 {},
                                 false,
                                 std::move(detail)});
    return result.rejections.back();
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

  std::optional<PlannedCandidate> solve(const Candidate &candidate,
                                        SolveLimits limits, std::size_t worker,
                                        Rejection &rejection) {
    Setting setting = settingOf(options, machine, candidate.dp, candidate.tp,
                                candidate.microBatch);
    ModelGraph graph = withBatch(model, candidate.microBatch * candidate.dp);
    return solveCandidate(graph, setting, candidate.microBatch, limits,
                          solvers[worker], rejection);
  }

  /// What came of one candidate.
  struct Answer {
    std::optional<PlannedCandidate> planned;
    Rejection rejection;
  };

  // First pass: a bound and a good plan of every candidate, nothing spent on
  // the gap between the two. As many at once whatever the machine, all against
  // the bar as it was before, so that the outcome is a function of the input.
  void consider(std::size_t first, std::size_t end) {
    double limit = bar();
    auto answer = [&](std::size_t i) {
      const Candidate &candidate = candidates[i];
      Answer one{{},
                 {candidate.dp,
                  candidate.tp,
                  candidate.microBatch,
                  Rejection::Reason::bound,
                  candidate.bound,
                  {},
                  false,
                  {}}};
      if (candidate.bound.value < limit)
        one.planned = solve(candidate, {limit, 0}, i - first, one.rejection);
      return one;
    };
    std::vector<std::future<Answer>> others;
    for (std::size_t i = first + 1; i < end; ++i)
      others.push_back(std::async(std::launch::async, answer, i));
    take(answer(first));
    for (std::future<Answer> &other : others)
      take(other.get());
  }

  void take(Answer answer) {
    if (answer.planned && answer.planned->fits) {
      pool.push_back(std::move(*answer.planned));
      return;
    }
    if (answer.rejection.reason == Rejection::Reason::bound)
      ++result.pruned;
    // A candidate given up after room was made for its workspace may still hold
    // a plan that needs less of it: its bound alone says how fast.
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

  // Second pass: while some candidate might still hold a faster plan than the
  // fastest, close the gap of the one with the lowest bound.
  void closeGaps() {
    std::vector<bool> tried(pool.size(), false);
    while (!pool.empty()) {
      double best = fastest().time.step.value;
      std::size_t next = pool.size();
      for (std::size_t i = 0; i < pool.size(); ++i)
        if (!tried[i] && pool[i].lowerBound.value < best * (1 - 1e-9) &&
            (next == pool.size() || pool[i].lowerBound < pool[next].lowerBound))
          next = i;
      if (next == pool.size())
        return;
      tried[next] = true;
      PlannedCandidate &open = pool[next];
      Rejection rejection;
      std::optional<PlannedCandidate> closed =
          solve({open.dp, open.tp, open.microBatch, {}}, {best, kManyPoints}, 0,
                rejection);
      // Given up: no plan there beats the best, which is all that matters.
      if (!closed || !closed->fits)
        open.lowerBound = std::max(open.lowerBound, rejection.bound);
      else if (closed->time.step <= open.time.step)
        open = std::move(*closed);
      else
        open.lowerBound = std::max(open.lowerBound, closed->lowerBound);
    }
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
      result.rejections.push_back({pool[i].dp,
                                   pool[i].tp,
                                   pool[i].microBatch,
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
  std::vector<Candidate> candidates;
  std::array<SolverCache, kAtOnce> solvers;
  std::vector<PlannedCandidate> pool; ///< that fit, in the order solved
  /// No plan of what was solved, or may fit after all, is faster.
  double openBound = kNever;
  SearchResult result;
};

} // namespace

Setting settingOf(const SearchOptions &options, const Machine &machine, int dp,
                  int tp, std::int64_t microBatch) {
  Setting setting;
  setting.mesh = meshOf(dp, tp);
  // Replicas differ in their samples and in nothing else.
  setting.rules = {{{Split::batch}, false}, {options.tensorSplits, true}};
  // Splits that follow from others are no choice of their own.
  setting.rules[kTensorAxis].splits.push_back(Split::feature);
  setting.microBatches = options.globalBatch / dp / microBatch;
  setting.machine = &machine;
  setting.precision = options.precision;
  setting.pins = options.pins;
  return setting;
}

SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options) {
  return Search(model, machine, options).run();
}

} // namespace mtplan::planner
