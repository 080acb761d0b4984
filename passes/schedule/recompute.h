//===- recompute.h - Forward work done again in backward --------*- C++ -*-===//
//
// Backward can compute an activation again instead of keeping it from forward:
// work replaces memory.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H
#define MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H

#include "ir/mtp.h"
#include "planner/search/segment/segment_plan.h"

namespace mtplan::passes {

/// The activations that are recomputed: the cores of attention, from the
/// queries, keys and values that their gradients read (Korthikanti et al. 2022,
/// section 5); or everything that backward reads, from what the segment is
/// handed (Chen et al. 2016).
enum class MadeAnew : std::uint8_t { cores, everything };

/// Rewrites the backward half of `segment`, differentiated or planned but not
/// partitioned. Operators that run again keep their names with ".again" behind
/// them and draw the same masks; conversions between layouts run again with
/// what they convert. Nothing is repeated that backward does not need.
void recompute(ir::SegmentOp segment, MadeAnew what);

/// Returns the values of the forward half that its backward half reads, in
/// program order, without parameters and inputs.
llvm::SmallVector<mlir::Value> savedValues(ir::SegmentOp segment);

/// `plans` cut where layers that recompute end: the first `layers` copies of
/// every part of the model that a stage runs in one go; negative: all. Then the
/// runs that recompute, by position. `parts` are the numbers of layers of these
/// parts, in model order.
struct RecomputedRuns {
  std::vector<planner::SegmentPlan> plans;
  std::vector<bool> again; ///< by plan
};
RecomputedRuns cutForRecompute(const planner::ModelGraph &graph,
                               const std::vector<planner::SegmentPlan> &plans,
                               const std::vector<int> &parts, int layers);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H
