//===- recompute.h - Forward work done again in backward --------*- C++ -*-===//
//
// What backward reads of forward is kept from one to the other. Instead it can
// be made anew from what it was made of: work for memory.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H
#define MTPLAN_PASSES_SCHEDULE_RECOMPUTE_H

#include "ir/mtp.h"
#include "planner/search/segment_plan.h"

namespace mtplan::passes {

/// What is made anew: the cores of attention, from the queries, keys and values
/// that their gradients read (Korthikanti et al. 2022, section 5); or all that
/// backward reads, from what the segment is handed (Chen et al. 2016).
enum class MadeAnew : std::uint8_t { cores, everything };

/// Rewrites the backward half of `segment`, differentiated or planned but not
/// partitioned. Operators that run again are called as they were, ".again"
/// after it, and draw the same masks; what converts a value between layouts
/// runs again with them. What backward does not need is not repeated.
void recompute(ir::SegmentOp segment, MadeAnew what);

/// Values of the forward half that its backward half reads, in program order:
/// what is kept from one to the other. Parameters and inputs are not.
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
