//===- overlapped_reduces.h - Reductions beside backward --------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_OVERLAPPED_REDUCES_H
#define MTPLAN_CODEGEN_OVERLAPPED_REDUCES_H

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Moves reductions of gradients from Stage::reduce behind the last run of the
/// schedule that touches them and marks them as Instruction::overlapped: the
/// gradients of a layer are reduced beside the backward of the layer before. A
/// reduction stays where it is if it scatters out of the arena of gradients, if
/// other stages take part, or if its gradient is added up again before it is
/// reduced, like that of a tied weight.
///
/// The reductions of a program are in the reverse order of their readiness. The
/// first then waits for the last gradient, the others follow without a wait,
/// and all may be one launch (PyTorch DDP, Li et al., VLDB 2020, section 3.2.3:
/// buckets in the reverse order of the model).
///
/// A reduction over an axis that layers communicate over, such as cp, shares
/// their stream, and layers wait for it.
///
/// Runs before writeWaits(). Complexity: reductions * schedule entries from the
/// last use on * copies of both * tensors of a program in the arena of
/// gradients.
void overlapReduces(runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_OVERLAPPED_REDUCES_H
