//===- verify_stages.h - Checks of messages and sums of stages --*- C++ -*-===//
//
// Stages exchange messages and sums. A message or sum that another stage lacks,
// or reaches in another order, causes a deadlock. A message or sum that matches
// the wrong one causes wrong results.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H
#define MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Checks that every message has a matching sender and receiver in one order,
/// and that a gradient returns to the sender of its value. All segments of
/// `module` have chunks.
mlir::LogicalResult verifyMessages(mlir::ModuleOp module, std::int64_t stages);

/// Checks that every stage updates the parameters that it holds, and that the
/// gradient of a shared parameter is summed over exactly the stages that hold
/// it, in the same way on each. All segments of `module` have chunks.
mlir::LogicalResult verifyUpdates(mlir::ModuleOp module, std::int64_t stages);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H
