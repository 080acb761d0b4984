//===- setting.h - What a configuration fixes -------------------*- C++ -*-===//
//
// SearchOptions holds the choices that are open to a search. Setting holds one
// configuration of them for the solver: a mesh, a micro-batch, and all else
// that prices depend on.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H
#define MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/strategy.h"
#include "planner/machine/software_json.h"
#include "planner/search/space/parallelism.h"
#include "planner/simulate/step.h"

namespace mtplan::planner {

/// Choices that a person made, by the indices of the graph they were resolved
/// for.
struct Pins {
  /// [segment][op]: the use of the tensor axis, in the words of nameOf(Split),
  /// or "replicated", "partial"; empty: free.
  std::vector<std::vector<std::string>> ops;
  /// [parameter]: per dimension the axis that stores it split, "" if none.
  std::vector<std::optional<std::vector<std::string>>> parameters;
};

/// One configuration for the solver: a mesh, a micro-batch, and all else that
/// prices depend on.
struct Setting {
  Mesh mesh;
  std::vector<AxisRule> rules;   ///< by axis
  std::int64_t microBatches = 1; ///< per step and replica
  int devices = 1;               ///< of all stages: the slowest sets the pace
  int zeroStage = 0;             ///< see Parallelism
  bool padsShards = false;       ///< see SearchOptions
  bool sumsPerUse = false;       ///< see SearchOptions
  bool scattersEarly = false;    ///< see SearchOptions
  Recompute recompute = Recompute::none; ///< of repeated segments
  /// The share of a repeated segment's repeats that recomputes; the others save
  /// everything. Prices are of a mean repeat.
  double recomputeShare = 1.0;
  /// The weight of gathers, gradient sums and updates in the sum that is
  /// minimised: below 1 where they may overlap other work.
  double overlapWeight = 1.0;
  Offload offload = Offload::none;
  int tiles = 1; ///< see Parallelism
  /// Whether the device's update, and the host's work for the optimizer, run in
  /// sequence with the weighted work.
  bool updateAddsUp = true, hostAddsUp = true;
  /// Micro-batches whose saved activations a rank holds at once; with virtual
  /// stages the mean over its chunks.
  double inFlight = 1.0;
  int parts = 1; ///< virtual stages: chunks of the model on a stage
  /// If set, the one layout of all values between segments on the tensor axis:
  /// the dimension that it splits, or kReplicated.
  std::optional<int> boundary;
  /// If set, the index of the state of every shared parameter: segments that
  /// share one may be in stages that are solved apart.
  std::optional<int> sharedState;
  const Machine *machine = nullptr;
  const Software *software = &defaultSoftware();
  Precision precision = Precision::bf16;
  const Pins *pins = nullptr; ///< null: nothing is pinned
};

/// Returns the use of the tensor axis under `strategy`, in the words of
/// Pins::ops.
const char *wordOf(const Op &op, const Strategy &strategy, int axis);

/// Bytes per element of training state (Rajbhandari et al. 2020, section 3.1: 2
/// + 2 + 12 in mixed precision).
struct StateBytes {
  double gradient = 2;
  double optimizer = 12;
  double traffic = 28; ///< read and written by one update, of the owned shard
  double sweep = 0;    ///< read and written of all that is stored
  double host = 0;     ///< stored in the host's memory, of the owned shard
};
StateBytes stateBytesOf(Precision precision);
/// Returns the same with the figures of the setting's software.
StateBytes stateBytesOf(const Setting &setting);

/// A dimension that an axis must divide for a split to be legal.
struct Divisor {
  std::string name; ///< "heads", "key/value heads"
  std::int64_t size = 0;
  Split split = Split::head; ///< binding only if this split is allowed
};

/// The choices that are open to a search, and its limits.
struct SearchOptions {
  int devices = 1; ///< dp * tp * pp * cp
  std::optional<int> dp, tp;
  std::optional<std::int64_t> microBatch; ///< samples per replica at once
  Choices<int> pp{{1}}, cp{{1}}, ep{{1}}, virtualStages{{1}}, zeroStage{{0}};
  /// Replicas that share the state that ZeRO splits; 0: all. If left open: all,
  /// those within one level of the network, or one.
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
  /// (unevenCuts). `layers` excludes it.
  bool unevenCuts = false;
  Overlaps overlaps{false, false, false, false, false, false};
  std::int64_t globalBatch = 1; ///< samples per step
  Precision precision = Precision::bf16;
  const Software *software = &defaultSoftware();
  /// Whether ZeRO pads dimensions that do not divide, as trainers do that
  /// flatten their state. Our own IR cannot.
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

#endif // MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H
