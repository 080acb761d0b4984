//===- parallelism.h - The configuration of a plan --------------*- C++ -*-===//
//
// The configuration says how devices are used before any operator is looked at:
// what a Megatron command line or a DeepSpeed file says. A strategy per
// operator then follows by exact search.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_PARALLELISM_H
#define MTPLAN_PLANNER_SEARCH_SPACE_PARALLELISM_H

#include <cstdint>
#include <vector>

#include "planner/simulate/schedule.h"

namespace mtplan::planner {

/// The part that backward recomputes instead of saving it: nothing; the core of
/// attention (Korthikanti et al. 2022, section 5); a whole layer but its input.
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
  /// tiling.h). 1: untiled.
  int tiles = 1;
  bool sequenceParallel = false; ///< the tensor axis may split the sequence
  /// Repeated layers of each virtual stage, in model order: pp * virtualStages
  /// numbers that add up to the model's layers.
  std::vector<int> layers;

  int devices() const { return dp * tp * pp * cp; }
  std::int64_t microBatches() const { return globalBatch / dp / microBatch; }
  auto operator<=>(const Parallelism &) const = default;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_PARALLELISM_H
