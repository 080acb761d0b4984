//===- followers.h - Kernels with who takes their result --------*- C++ -*-===//
//
// An einsum whose result goes into an activation, a sum or an accumulator, a
// dropout or the gradient of a norm whose result goes into a sum, and a sum of
// columns whose result goes into an accumulator, are written as one instruction
// with it (setting `then`), so that a device can do both at once. Decided when
// all bytes have their places: one of them moves to the other, which must not
// cross who touches the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_FOLLOWERS_H
#define MTPLAN_CODEGEN_FOLLOWERS_H

#include <vector>

#include "mlir/IR/Operation.h"

#include "codegen/meetings.h"

namespace mtplan::codegen {

/// \param operators  by instruction, what it was written for; kept in step
/// O(instructions of the program between an operator and who takes its result).
void joinFollowers(runtime::Program &program,
                   std::vector<mlir::Operation *> &operators,
                   const Meetings &meetings);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_FOLLOWERS_H
