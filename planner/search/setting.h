//===- setting.h - What one candidate fixes before it is solved -*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SETTING_H
#define MTPLAN_PLANNER_SEARCH_SETTING_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/graph/strategy.h"
#include "planner/machine/machine.h"
#include "planner/machine/software_json.h"
#include "planner/search/parallelism.h"

namespace mtplan::planner {

/// Data-parallel replicas, and inside each the tensor axis that operators are
/// split over.
inline constexpr int kDataAxis = 0;
inline constexpr int kTensorAxis = 1;
Mesh meshOf(int dp, int tp);

/// The mesh of one pipeline stage: "dp" first and "tp" last, between them, if
/// more than one rank is along them: "zero" (replicas that share one copy of
/// the state, where they are fewer than all), "ep", "cp".
Mesh meshOf(const Parallelism &how);

/// The mesh of all ranks: the stages, "pp", around that of one of them.
Mesh worldMeshOf(const Parallelism &how);

/// The order in which its stages go through their micro-batches.
ScheduleShape shapeOf(const Parallelism &how);

/// Micro-batches whose saved activations a rank of the stage holds at once;
/// with virtual stages the mean over its chunks. See Setting::inFlight.
double inFlightOf(const Parallelism &how, int stage);

/// Of all layers, those that recompute.
double recomputeShareOf(const Parallelism &how);
/// Of the layers of one stage.
double recomputeShareOf(const Parallelism &how, int stage);
/// Of the stage where that is least. Layers may differ in what they take: no
/// less than this share of all of it comes twice.
double leastRecomputeShareOf(const Parallelism &how);

/// Index of the tensor axis: the last.
inline int tensorAxisOf(const Mesh &mesh) {
  return static_cast<int>(mesh.axes.size()) - 1;
}

/// Choices made by a person. Indices follow the graph they were resolved for.
struct Pins {
  /// [segment][op]: what the tensor axis must be used for, in the words of
  /// nameOf(Split), or "replicated", "partial"; empty: free.
  std::vector<std::vector<std::string>> ops;
  /// [parameter]: per dimension the axis that stores it split, "" for whole.
  std::vector<std::optional<std::vector<std::string>>> parameters;
};

/// One candidate: a mesh, a micro-batch, and everything prices depend on.
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
  /// Of the copies of a repeated segment, those that do; the others keep
  /// everything. Prices are of a mean copy.
  double recomputeShare = 1.0;
  /// What gathers of parameters, sums of gradients and updates cost, of the
  /// time they take: less than all of it where other work may go on meanwhile.
  double besideWeight = 1.0;
  Offload offload = Offload::none;
  int tiles = 1; ///< see Parallelism
  /// Whether the device's update, and what the host does for the optimizer,
  /// stand in a row with all else that has the weight.
  bool updateAddsUp = true, hostAddsUp = true;
  /// Micro-batches whose saved activations a rank holds at once; with virtual
  /// stages the mean over its chunks.
  double inFlight = 1.0;
  int parts = 1; ///< virtual stages: parts of the model that a stage holds
  /// If set, the one layout of all values between segments on the tensor axis:
  /// the dimension that it splits, or kWhole.
  std::optional<int> boundary;
  /// If set, which of its states every shared parameter is kept in: segments
  /// that share one may be in stages that are solved apart.
  std::optional<int> sharedState;
  const Machine *machine = nullptr;
  const Software *software = &defaultSoftware();
  Precision precision = Precision::bf16;
  const Pins *pins = nullptr; ///< null: nothing is pinned
};

/// What the tensor axis does under `strategy`, in the words of Pins::ops.
const char *wordOf(const Op &op, const Strategy &strategy, int axis);

/// Bytes per element of what training keeps beside the weights
/// (Rajbhandari et al. 2020, section 3.1: 2 + 2 + 12 in mixed precision).
struct StateBytes {
  double gradient = 2;
  double optimizer = 12;
  double traffic = 28; ///< read and written by one update, of what is owned
  double sweep = 0;    ///< the same, of all that is stored
  double host = 0;     ///< kept in the host's memory, of what is owned
};
StateBytes stateBytesOf(Precision precision);
/// The same as the setting's software has it.
StateBytes stateBytesOf(const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SETTING_H
