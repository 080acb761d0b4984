//===- overlapped_reduces.h - Gradients are reduced beside backward -*- C++
//-*-===//

#ifndef MTPLAN_CODEGEN_OVERLAPPED_REDUCES_H
#define MTPLAN_CODEGEN_OVERLAPPED_REDUCES_H

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Moves reductions of gradients from Stage::reduce behind the last run of the
/// schedule that touches these, as Instruction::overlapped: those of a layer
/// run beside the backward of the layer before. What is scattered to where no
/// gradients are, what other stages have a part in, and what is added up again
/// before it is reduced (a tied weight) stays.
///
/// In a program the last to be ready comes first, so that all others follow it
/// without waiting: they may go as one (PyTorch DDP, Li et al., VLDB 2020,
/// section 3.2.3: buckets in the reverse order of the model).
///
/// A sum over an axis that the layers' own collectives go over, too, as cp, is
/// on their stream, and awaited with them.
///
/// Before assignStreams(). Complexity: reduces * entries of the schedule from
/// the last use on * copies of both * tensors of a program in the gradients'
/// arena.
void overlapReduces(runtime::Plan &plan);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_OVERLAPPED_REDUCES_H
