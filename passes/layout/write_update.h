//===- write_update.h - The plan of what happens once a step ----*- C++ -*-===//

#ifndef MTPLAN_PASSES_LAYOUT_WRITE_UPDATE_H
#define MTPLAN_PASSES_LAYOUT_WRITE_UPDATE_H

#include <vector>

#include "ir/mtp.h"
#include "planner/search/segment/segment_plan.h"

namespace mtplan::passes {

/// Writes layouts and reshards into `update`, whose segments have been cut and
/// written by `plans` already. A gradient is brought from its accumulator to
/// the ranks that own the optimizer's state; an updated weight that they own
/// less of than they store is brought together again.
void writeUpdate(ir::UpdateOp update, const planner::ModelGraph &graph,
                 const std::vector<planner::SegmentPlan> &plans,
                 const planner::Mesh &mesh);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_LAYOUT_WRITE_UPDATE_H
