//===- search_options.h - What a search may choose from ---------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_SEARCH_OPTIONS_H
#define MTPLAN_PLANNER_SEARCH_SPACE_SEARCH_OPTIONS_H

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planner/search/space/setting.h"
#include "planner/simulate/step.h"

namespace mtplan::planner {

/// A dimension that an axis must divide for a split to be legal.
struct Divisor {
  std::string name; ///< "heads", "key/value heads"
  std::int64_t size = 0;
  Split split = Split::head; ///< binding only if this split is allowed
};

/// The values that may be chosen; empty allows every value.
template <typename T> struct Choices {
  std::vector<T> only;
  bool allows(T value) const {
    for (const T &one : only)
      if (one == value)
        return true;
    return only.empty();
  }
};

struct SearchOptions {
  int devices = 1; ///< dp * tp * pp * cp
  std::optional<int> dp, tp;
  std::optional<std::int64_t> microBatch; ///< samples per replica at once
  Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}}, zeroStage{{0}};
  /// Replicas that share what ZeRO splits; 0: all. If left open: all, those
  /// within one level of the network, or one.
  Choices<int> zeroRanks{{0}};
  Choices<ScheduleKind> schedule{{ScheduleKind::oneForwardOneBackward}};
  Choices<Recompute> recompute{{Recompute::none}};
  /// Layers of each virtual stage that recompute in full, if some do; -1: all.
  Choices<int> recomputeLayers{{-1}};
  /// Offload needs a machine that describes its hosts.
  Choices<Offload> offload{{Offload::none}};
  Choices<int> tiles{{1}}; ///< more than one only in ZeRO stage 3
  /// Layers of each virtual stage; empty: evenly distributed.
  std::vector<int> layers;
  /// Whether pipelines with one chunk per stage may also be cut unevenly
  /// (cuts.h). `layers` excludes it.
  bool unevenCuts = false;
  Overlaps overlaps{false, false, false, false, false, false};
  std::int64_t globalBatch = 1; ///< samples per step
  Precision precision = Precision::bf16;
  const Software *software = &defaultSoftware();
  /// Whether ZeRO pads what does not divide, as trainers do that flatten their
  /// state. Our own IR cannot.
  bool padsShards = false;
  /// Whether a weight that several segments of a stage use, such as a tied
  /// embedding, has a gradient accumulator for each of those that are not
  /// repeated. The order of micro-batches then does not mix them.
  bool sumsPerUse = false;
  /// Whether ZeRO 1 scatters gradients while backward runs, into the
  /// accumulators of the repeat after it. This needs room for one more repeat's
  /// shards.
  bool scattersEarly = false;
  std::vector<Split> tensorSplits; ///< what tp may be used for
  std::vector<Divisor> divisors;
  const Pins *pins = nullptr;
  int top = 1; ///< plans to return, best first
  /// Slower plans are rejected.
  Seconds atMost{std::numeric_limits<double>::infinity()};
  /// Polled between candidates once there is a plan; the search stops when it
  /// returns true. Null: never.
  std::function<bool()> stop;
};

/// Returns the configuration's setting, from which prices and legal strategies
/// follow.
Setting settingOf(const SearchOptions &options, const Machine &machine,
                  const Parallelism &config);

/// Returns whether some traffic of parameters and gradients overlaps compute.
bool hidesReplicaTraffic(const SearchOptions &options,
                         const Parallelism &config);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_SEARCH_OPTIONS_H
