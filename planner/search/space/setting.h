//===- setting.h - What a configuration fixes before solving ----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H
#define MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/strategy.h"
#include "planner/machine/machine.h"
#include "planner/machine/software_json.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::planner {

/// The axis of data-parallel replicas, and inside each the tensor axis, which
/// operators are split over.
inline constexpr int kDataAxis = 0;
inline constexpr int kTensorAxis = 1;
Mesh meshOf(int dp, int tp);

/// Returns the mesh of one pipeline stage: "dp" first and "tp" last, and
/// between them those with more than one rank of "zero" (replicas that share
/// one copy of the state, if fewer than all), "ep" and "cp".
Mesh meshOf(const Parallelism &config);

/// Returns the mesh of all ranks: "pp" outside the mesh of one stage.
Mesh worldMeshOf(const Parallelism &config);

/// Returns the order in which the stages process their micro-batches.
ScheduleShape shapeOf(const Parallelism &config);

/// Returns the micro-batches whose saved activations a rank of the stage holds
/// at once; with virtual stages the mean over its chunks (Setting::inFlight).
double inFlightOf(const Parallelism &config, int stage);

/// Returns the share of all layers that recomputes.
double recomputeShareOf(const Parallelism &config);
/// Returns the share of one stage's layers that recomputes.
double recomputeShareOf(const Parallelism &config, int stage);
/// Returns the least of all stages' shares. Layers may differ in their time, so
/// at least this share of all of it is recomputed.
double leastRecomputeShareOf(const Parallelism &config);

/// Returns the index of the tensor axis, the last.
inline int tensorAxisOf(const Mesh &mesh) {
  return static_cast<int>(mesh.axes.size()) - 1;
}

/// Choices that a person made, by the indices of the graph they were resolved
/// for.
struct Pins {
  /// [segment][op]: what the tensor axis must be used for, in the words of
  /// nameOf(Split), or "replicated", "partial"; empty: free.
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

/// Returns what the tensor axis does under `strategy`, in the words of
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

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_SETTING_H
