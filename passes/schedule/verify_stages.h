//===- verify_stages.h - What the gate of stages looks at -------*- C++ -*-===//
//
// Stages exchange messages and sums. A stage that reaches a message or a sum
// which the other end lacks, or has later, waits for ever; a stage that matches
// another by mistake computes something else.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H
#define MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Every message has a sender and a receiver, which match and come in one
/// order; a gradient goes back to where its value came from. All segments of
/// `module` have chunks.
mlir::LogicalResult verifyMessages(mlir::ModuleOp module, std::int64_t stages);

/// Every stage updates what it holds. What other stages hold, too, is summed
/// over exactly these, which run the same sums in the same way. All segments of
/// `module` have chunks.
mlir::LogicalResult verifyUpdates(mlir::ModuleOp module, std::int64_t stages);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_VERIFY_STAGES_H
