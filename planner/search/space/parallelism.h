//===- parallelism.h - The configuration of a plan --------------*- C++ -*-===//
//
// The configuration says how devices are used before any operator is looked at,
// as a Megatron command line or a DeepSpeed file does. A strategy per operator
// then follows by exact search.
//
// Replicas form groups that share a set of experts (ep) and groups that share
// the state that ZeRO splits (zeroRanks). This file alone decides which numbers
// are compatible with the rest of a mesh; its messages name the nearest
// compatible ones.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_PARALLELISM_H
#define MTPLAN_PLANNER_SEARCH_SPACE_PARALLELISM_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/machine/machine.h"
#include "planner/simulate/schedule.h"

namespace mtplan::planner {

/// The part that backward recomputes instead of saving it: nothing; the core of
/// attention (Korthikanti et al. 2022, section 5); a layer but its input.
enum class Recompute : std::uint8_t { none, selective, full };
const char *nameOf(Recompute recompute);

/// The state that is stored in the host's memory between its uses.
enum class Offload : std::uint8_t { none, optimizer };
const char *nameOf(Offload offload);

/// A configuration. Ranks are numbered in Megatron's default order, tensor
/// ranks innermost: tp - cp - ep - dp - pp.
struct Parallelism {
  int dp = 1; ///< data-parallel replicas; ep of them share a set of experts
  int tp = 1; ///< tensor ranks
  int pp = 1; ///< pipeline stages
  int cp = 1; ///< context ranks: they split the sequence
  int ep = 1; ///< expert ranks; divides dp
  int virtualStages = 1; ///< chunks per stage, v
  ScheduleKind schedule = ScheduleKind::oneForwardOneBackward;
  std::int64_t microBatch = 1;  ///< samples per replica and micro-batch
  std::int64_t globalBatch = 1; ///< samples per step
  /// ZeRO stage (Rajbhandari et al. 2020): 1 splits the optimizer's state over
  /// the replicas, 2 also the gradients, 3 also the parameters.
  int zeroStage = 0;
  /// Replicas that share one copy of what ZeRO splits; divides dp. Fewer than
  /// dp is hybrid sharding, with copies across groups; above ep it is a
  /// multiple of ep.
  int zeroRanks = 1;
  Recompute recompute = Recompute::none;
  /// Layers of each virtual stage that recompute by `recompute`; the others
  /// save everything. Negative: all.
  int recomputeLayers = -1;
  Offload offload = Offload::none;
  /// The number of tiles in which ZeRO stage 3 gathers, uses and reduces the
  /// largest weight of a product; smaller weights have tiles no larger (see
  /// segment_runs.h). 1: untiled.
  int tiles = 1;
  bool sequenceParallel = false; ///< the tensor axis may split the sequence
  /// Repeated layers of each virtual stage, in model order: pp * virtualStages
  /// numbers that add up to the model's layers.
  std::vector<int> layers;

  int devices() const { return dp * tp * pp * cp; }
  std::int64_t microBatches() const { return globalBatch / dp / microBatch; }
  auto operator<=>(const Parallelism &) const = default;
};

/// Returns the mesh of data-parallel replicas, and inside each the tensor axis,
/// over which operators are split.
Mesh meshOf(int dp, int tp);
inline constexpr int kDataAxis = 0;
inline constexpr int kTensorAxis = 1;

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

/// The values that may be chosen; none allows every value.
template <typename T> struct Choices {
  std::vector<T> only;
  bool allows(T value) const {
    for (const T &one : only)
      if (one == value)
        return true;
    return only.empty();
  }
};

/// Returns the number of routed experts of a layer; 1 if there are none.
std::int64_t expertsOf(const ModelGraph &model);

/// Returns the expert ranks that `asked` allows `dp` replicas, ascending.
std::vector<int> expertRanks(const Choices<int> &asked, std::int64_t experts,
                             int dp);

/// Returns the numbers of replicas, out of dp, that may share what ZeRO splits
/// under the configuration's ep: those that fill a level of the network, and
/// all; or those that were asked for. Stage 0 splits nothing: 1.
std::vector<int> zeroRanksOf(const Parallelism &config, const Machine &machine,
                             const Choices<int> &asked);

/// Returns a message if none of the requested expert-parallel sizes is
/// possible, with the nearest possible ones; otherwise an empty string.
/// \param areReplicas  true: `devices` is dp; false: dp is open and divides it
std::string againstExpertRanks(const Choices<int> &asked, std::int64_t experts,
                               int devices, bool areReplicas = true);

/// Returns a message if none of the requested ZeRO group sizes is possible;
/// otherwise an empty string.
/// \param expertRanks  expert-parallel sizes that remain possible, not empty
std::string againstZeroRanks(const Choices<int> &asked,
                             const std::vector<int> &expertRanks, int dp);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PARALLELISM_H
