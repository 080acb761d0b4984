//===- search.cpp - The outer search: mesh and micro-batch ----------------===//

#include "planner/search/search.h"

#include <algorithm>
#include <limits>

#include "planner/cost/compute_cost.h"

namespace mtplan::planner {

namespace {

struct Candidate {
  int dp = 1, tp = 1;
  std::int64_t microBatch = 1;
  Seconds bound;
};

// Dimensions that a split over `tp` would have to divide and does not.
std::string violatedDivisor(const SearchOptions &options, int tp) {
  for (const Divisor &divisor : options.divisors)
    if (divisor.size % tp != 0 &&
        std::ranges::find(options.tensorSplits, divisor.split) !=
            options.tensorSplits.end())
      return std::to_string(divisor.size) + " " + divisor.name;
  return {};
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
    for (const Candidate &candidate : candidates)
      consider(candidate);
    result.optimal =
        !result.plans.empty() && result.plans.front().optimal &&
        result.plans.front().time.step.value <= openBound * (1 + 1e-9);
    if (!result.plans.empty())
      result.nearest.reset();
    return std::move(result);
  }

private:
  void enumerate() {
    for (int tp = 1; tp <= options.devices; ++tp) {
      int dp = options.devices / tp;
      if (options.devices % tp != 0 || (options.tp && *options.tp != tp) ||
          (options.dp && *options.dp != dp))
        continue;
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
      for (std::int64_t b = 1; b <= perReplica; ++b)
        if (perReplica % b == 0 &&
            (!options.microBatch || *options.microBatch == b))
          add({dp, tp, b, {}});
    }
  }

  void add(Candidate candidate) {
    ++result.candidates;
    Bytes floor = memoryFloor(model, candidate.tp, options.precision, machine);
    if (floor > machine.device.memory) {
      ++result.pruned;
      reject(candidate, Rejection::Reason::memory, {}).needed = floor;
      return;
    }
    ModelGraph graph = withBatch(model, candidate.microBatch * candidate.dp);
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
                                 std::move(detail)});
    return result.rejections.back();
  }

  // Slower than this, a plan does not enter the list.
  Seconds bar() const {
    if (static_cast<int>(result.plans.size()) < options.top)
      return {std::numeric_limits<double>::infinity()};
    return result.plans.back().time.step;
  }

  void consider(const Candidate &candidate) {
    if (candidate.bound >= bar()) {
      ++result.pruned;
      reject(candidate, Rejection::Reason::bound, {});
      return;
    }
    Setting setting = settingOf(options, machine, candidate.dp, candidate.tp,
                                candidate.microBatch);
    ModelGraph graph = withBatch(model, candidate.microBatch * candidate.dp);
    Rejection rejection{candidate.dp,
                        candidate.tp,
                        candidate.microBatch,
                        {},
                        candidate.bound,
                        {},
                        {}};
    std::optional<PlannedCandidate> planned =
        solveCandidate(graph, setting, candidate.microBatch, bar(), rejection);
    if (planned && planned->fits) {
      openBound = std::min(openBound, planned->lowerBound.value);
      auto slower = std::ranges::find_if(
          result.plans, [&](const PlannedCandidate &other) {
            return planned->time.step < other.time.step;
          });
      result.plans.insert(slower, std::move(*planned));
      if (static_cast<int>(result.plans.size()) > options.top)
        result.plans.pop_back();
      return;
    }
    if (rejection.reason == Rejection::Reason::bound)
      ++result.pruned;
    if (rejection.reason == Rejection::Reason::memory)
      openBound = std::min(openBound, rejection.bound.value);
    if (planned && (!result.nearest ||
                    planned->memory.total() < result.nearest->memory.total()))
      result.nearest = std::move(planned);
    result.rejections.push_back(std::move(rejection));
  }

  const ModelGraph &model;
  const Machine &machine;
  const SearchOptions &options;
  std::vector<Candidate> candidates;
  /// Lower bound over everything that was solved and fits.
  double openBound = std::numeric_limits<double>::infinity();
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
