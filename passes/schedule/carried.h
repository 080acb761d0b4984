//===- carried.h - What a segment carries on to the next --------*- C++ -*-===//

#ifndef MTPLAN_PASSES_SCHEDULE_CARRIED_H
#define MTPLAN_PASSES_SCHEDULE_CARRIED_H

#include "ir/mtp.h"

namespace mtplan::passes {

/// Whether an operand of a yield has a value of its own: one that is made in
/// the block and yielded once, or the block's argument of the same position.
bool isSeparate(mlir::OpOperand &carried);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_SCHEDULE_CARRIED_H
