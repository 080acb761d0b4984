//===- parallelism.h - The configuration of a plan --------------*- C++ -*-===//
//
// Defines a configuration, which states how a plan uses the devices, as a
// Megatron-LM command line or a DeepSpeed file does. A configuration does not
// fix the strategies of the operators.
//
// Replicas form groups that share a set of experts (ep) and groups that share
// the state that ZeRO shards (zeroRanks). Both sizes must be compatible with
// the mesh.
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

/// Says which values backward recomputes instead of reading saved ones.
/// `selective` names the values of core attention (Korthikanti et al. 2022,
/// section 5), or those in Software::selective; `full` names all values of a
/// layer but its input.
enum class Recompute : std::uint8_t { none, selective, full };
const char *nameOf(Recompute recompute);

/// Says which training state is stored in the host's memory between its uses.
enum class Offload : std::uint8_t { none, optimizer };
const char *nameOf(Offload offload);

/// Holds a configuration. Ranks are numbered in Megatron-LM's default order,
/// tp-cp-ep-dp-pp, with tensor ranks innermost.
struct Parallelism {
  int dp = 1; ///< data-parallel replicas; ep of them share a set of experts
  int tp = 1; ///< tensor ranks
  /// Counts the ranks of the second tensor axis, "tp2"; divides tp. If 1, the
  /// tensor ranks form one axis. Otherwise an operator chooses a split for each
  /// of the axes "tp", which has tp / tp2 ranks, and "tp2".
  int tp2 = 1;
  int pp = 1;            ///< pipeline stages
  int cp = 1;            ///< context ranks: they split the sequence
  int ep = 1;            ///< expert ranks; divides dp
  int virtualStages = 1; ///< chunks per stage, v
  ScheduleKind schedule = ScheduleKind::oneForwardOneBackward;
  std::int64_t microBatch = 1;  ///< samples per replica and micro-batch
  std::int64_t globalBatch = 1; ///< samples per step
  /// Holds the ZeRO stage (Rajbhandari et al. 2020). Stage 1 shards the
  /// optimizer's state over the replicas, stage 2 also the gradients, and stage
  /// 3 also the parameters.
  int zeroStage = 0;
  /// Counts the replicas that share one copy of the state that ZeRO shards;
  /// divides dp. A number below dp means hybrid sharding, with one copy per
  /// group of replicas; the number must then be a multiple of ep and larger
  /// than ep.
  int zeroRanks = 1;
  Recompute recompute = Recompute::none;
  /// Counts the layers per virtual stage to which `recompute` applies; the
  /// other layers save all values. If negative, `recompute` applies to all
  /// layers.
  int recomputeLayers = -1;
  Offload offload = Offload::none;
  /// Counts the tiles in which ZeRO stage 3 all-gathers, uses and reduces the
  /// largest weight of a product; the tiles of smaller weights are no larger
  /// (see segment_runs.h). 1 means untiled.
  int tiles = 1;
  bool sequenceParallel = false; ///< the tensor axis may split the sequence
  /// Lists the layers of each virtual stage, in model order: pp * virtualStages
  /// numbers with the sum layersOf().
  std::vector<int> layers;

  int devices() const { return dp * tp * pp * cp; }
  std::int64_t microBatches() const { return globalBatch / dp / microBatch; }
  auto operator<=>(const Parallelism &) const = default;
};

/// Returns the mesh with the axes "dp" and "tp", of which "tp" is innermost.
Mesh meshOf(int dp, int tp);
inline constexpr int kDataAxis = 0;
inline constexpr int kTensorAxis = 1;

/// Returns the mesh of one pipeline stage: "dp" first, the tensor axes "tp" and
/// "tp2" last, and between them "zero" (in hybrid sharding, the replicas that
/// share one copy of the state), "ep" and "cp". All axes except "dp" and "tp"
/// are left out if they have one rank.
Mesh meshOf(const Parallelism &config);

ScheduleShape shapeOf(const Parallelism &config);

/// Returns the micro-batches in flight on a rank of the stage; with virtual
/// stages, this is the mean over the rank's chunks.
double inFlightOf(const Parallelism &config, int stage);

/// Returns the share of recomputed layers among all layers, or among the layers
/// of one stage.
double recomputeShareOf(const Parallelism &config);
double recomputeShareOf(const Parallelism &config, int stage);
/// Returns the least recomputeShareOf() of all stages. Layers differ in time,
/// so only this share of the total time is recomputed with certainty.
double leastRecomputeShareOf(const Parallelism &config);

/// Returns the index of the first tensor axis. This axis and all later axes are
/// tensor axes.
inline int tensorAxisOf(const Mesh &mesh) {
  const int last = static_cast<int>(mesh.axes.size()) - 1;
  return mesh.axes.back().name == "tp2" ? last - 1 : last;
}

/// Returns the indices of the tensor axes, one or two.
std::vector<int> tensorAxesOf(const Mesh &mesh);

/// Returns the number of tensor ranks, Parallelism::tp.
int tensorRanksOf(const Mesh &mesh);

/// Lists the values that may be chosen; an empty list allows every value.
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

/// Returns the expert-parallel sizes that `asked`, the number of experts and
/// the number of replicas `dp` allow, ascending.
std::vector<int> expertRanks(const Choices<int> &asked, std::int64_t experts,
                             int dp);

/// Returns the legal values of Parallelism::zeroRanks for the configuration's
/// dp and ep. These are the legal values in `asked`. If `asked` allows every
/// value, they are dp and, for each level of the network, the largest legal
/// value that fits in one domain. For ZeRO stage 0, the only value is 1.
std::vector<int> zeroRanksOf(const Parallelism &config, const Machine &machine,
                             const Choices<int> &asked);

/// Returns a message if no requested expert-parallel size is possible, else "".
/// \param areReplicas  true: `devices` is dp; false: dp is open and divides
/// `devices`
std::string errorOfExpertRanks(const Choices<int> &asked, std::int64_t experts,
                               int devices, bool areReplicas = true);

/// Returns a message if no requested ZeRO group size is possible, else "".
/// \param expertRanks  expert-parallel sizes that remain possible, not empty
std::string errorOfZeroRanks(const Choices<int> &asked,
                             const std::vector<int> &expertRanks, int dp);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PARALLELISM_H
