//===- verify_updates.h - Verifies the updates of all stages ----*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_VERIFY_UPDATES_H
#define MTPLAN_PASSES_SCHEDULE_VERIFY_UPDATES_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Checks that every stage updates the parameters that it holds, and that the
/// gradient of a shared parameter is summed over exactly the stages that hold
/// it, in the same way on each. All segments of `module` must have chunks.
mlir::LogicalResult verifyUpdates(mlir::ModuleOp module, std::int64_t stages);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_VERIFY_UPDATES_H
