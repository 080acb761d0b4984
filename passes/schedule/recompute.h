//===- recompute.h - Recomputes activations in backward ---------*- C++ -*-===//
//
// Backward can recompute an activation instead of reading the value saved in
// forward. This saves memory but repeats operations.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H
#define MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H

#include "ir/mtp.h"
#include "planner/search/segment/segment_plan.h"
#include "planner/search/space/parallelism.h"

namespace mtplan::passes {

/// Rewrites the backward half of `segment`. The module must be differentiated,
/// may be planned, and must not be partitioned. Recomputed operators have the
/// suffix ".again" in their labels and use the same dropout masks. Reshards of
/// recomputed values are repeated, too. Only values that backward needs are
/// recomputed.
/// \param what  `selective` recomputes the cores of attention from the queries,
/// keys and values that their gradients read (Korthikanti et al. 2022, section
/// 5); `full` recomputes, from the arguments of the segment, everything that
/// backward reads (Chen et al. 2016)
void recompute(ir::SegmentOp segment, planner::Recompute what);

/// Returns the values of the forward half that the backward half of `segment`
/// reads, in program order, without parameters and inputs.
llvm::SmallVector<mlir::Value> savedValues(ir::SegmentOp segment);

/// Lists segment plans, each of which recomputes all of its layers or none.
struct RecomputedRuns {
  std::vector<planner::SegmentPlan> plans;
  std::vector<bool> again; ///< whether the layers of each plan recompute
};

/// Splits `plans` where recomputation begins or ends. The first `layers` layers
/// of each pipeline part are recomputed, or all layers if `layers` is negative.
/// \param parts  number of layers of each pipeline part, in model order
RecomputedRuns cutForRecompute(const planner::ModelGraph &graph,
                               const std::vector<planner::SegmentPlan> &plans,
                               const std::vector<int> &parts, int layers);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H
