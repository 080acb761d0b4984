//===- verify_stages.h - What the gate of stages looks at -------*- C++ -*-===//
//
// Stages meet in messages and in sums. A stage that comes to one of either
// which the other end has not, or has later, waits for ever; one that matches
// another by mistake computes something else.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H
#define MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Every message has an end that sends and one that receives, which match and
/// come in one order; a gradient goes back to where its value came from. All
/// segments of `module` have chunks.
mlir::LogicalResult verifyMessages(mlir::ModuleOp module, std::int64_t stages);

/// Every stage updates what it holds, and sums what others hold as well with
/// just these, all of them coming to the same sums. All segments of `module`
/// have chunks.
mlir::LogicalResult verifyUpdates(mlir::ModuleOp module, std::int64_t stages);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H
