//===- attention_cost.h - Time of attention on one rank ---------*- C++ -*-===//
//
// A fused kernel computes the causal half and the diagonal's blocks, heads
// padded to a size it has, at a share of peak that depends on kernel and
// device. Older software multiplies whole batches of score matrices and passes
// over the scores in between; those that are kept for backward count in memory.
// Source of the form: docs/studies/step-time, section 3.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_ATTENTION_COST_H
#define MTPLAN_PLANNER_COST_ATTENTION_COST_H

#include "planner/cost/local_work.h"
#include "planner/machine/software.h"
#include "planner/units.h"

namespace mtplan::planner {

/// Of one rank's piece of an attention operator. The factors of mtp.attention
/// are known by name: b and heads g, r; s queries; k keys; d features of a
/// head. An operator without these has no shape.
struct AttentionShape {
  double heads = 1; ///< times samples
  double queries = 1, keys = 1, headSize = 1;
  bool causal = false;
  double scores() const { return heads * queries * keys; }
};
std::optional<AttentionShape> attentionShapeOf(const Op &op,
                                               const LocalWork &work);

/// Arithmetic of a fused kernel: what it computes beside the operator's own
/// for the diagonal and for padded heads is in it.
Flops fusedFlops(const AttentionShape &shape, bool backward,
                 const AttentionKernel &kernel);

/// Time without kernel gaps.
Seconds attentionTime(const Op &op, const LocalWork &work, const Device &device,
                      const Software &software, Precision precision);

/// attentionTime of a share 1 / ranks of the whole operator is no less.
Seconds attentionFloor(const Op &op, const LocalWork &whole,
                       const Device &device, const Software &software,
                       Precision precision);

/// What one rank's piece of a forward operator keeps for backward beside its
/// operands and results: the scores; 0 for every other operator and kernel.
Bytes savedScores(const Op &op, const LocalWork &work, const Software &software,
                  Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_ATTENTION_COST_H
