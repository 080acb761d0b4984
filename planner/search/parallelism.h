//===- parallelism.h - The outer half of a plan -----------------*- C++ -*-===//
//
// How the devices are shared out, before any operator is looked at: what a
// Megatron command line or a DeepSpeed configuration says. The inner half, a
// strategy per operator, follows by exact search.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_PARALLELISM_H
#define MTPLAN_PLANNER_SEARCH_PARALLELISM_H

#include <cstdint>
#include <vector>

#include "planner/simulate/schedule.h"

namespace mtplan::planner {

/// What is computed a second time in backward instead of being kept:
/// nothing; the core of attention (Korthikanti et al. 2022, section 5); all of
/// a layer but its input.
enum class Recompute : std::uint8_t { none, selective, full };
const char *nameOf(Recompute recompute);

/// What lives in the host's memory between its uses.
enum class Offload : std::uint8_t { none, optimizer };
const char *nameOf(Offload offload);

/// Ranks are numbered as Megatron's default order says, tensor ranks
/// innermost: tp - cp - ep - dp - pp.
struct Parallelism {
  int dp = 1; ///< data-parallel replicas; ep of them share a set of experts
  int tp = 1; ///< tensor ranks
  int pp = 1; ///< pipeline stages
  int cp = 1; ///< context ranks: they split the sequence
  int ep = 1; ///< expert ranks; divides dp
  int virtualStages = 1; ///< chunks per stage, v
  ScheduleKind schedule = ScheduleKind::oneForwardOneBackward;
  std::int64_t microBatch = 1;  ///< samples per replica at once
  std::int64_t globalBatch = 1; ///< samples per step
  /// ZeRO stage (Rajbhandari et al. 2020): 1 splits the optimizer's state over
  /// the replicas, 2 also the gradients, 3 also the parameters.
  int zeroStage = 0;
  /// Replicas that share one copy of what ZeRO splits; divides dp. Less than
  /// dp: hybrid sharding, whole copies beyond, and then a multiple of ep above
  /// it.
  int zeroRanks = 1;
  Recompute recompute = Recompute::none;
  /// Layers of each part of the model that recompute, of `recompute`'s kind;
  /// the others keep everything. Negative: all.
  int recomputeLayers = -1;
  Offload offload = Offload::none;
  /// Of ZeRO stage 3: the largest weight of a product is gathered, used and its
  /// gradient reduced in as many tiles, the others in tiles no larger; 1: at
  /// once (see tiling.h).
  int tiles = 1;
  bool sequenceParallel = false; ///< the tensor axis may split the sequence
  /// Repeated layers in each part of the model, in model order: pp *
  /// virtualStages numbers that add up to the model's layers.
  std::vector<int> layers;

  int devices() const { return dp * tp * pp * cp; }
  std::int64_t microBatches() const { return globalBatch / dp / microBatch; }
  auto operator<=>(const Parallelism &) const = default;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PARALLELISM_H
