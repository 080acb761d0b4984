//===- attention_cost.h - Time of attention on one rank ---------*- C++ -*-===//
//
// A fused kernel computes the causal half and the diagonal's blocks, with heads
// padded to a supported size, at a share of the peak that depends on kernel and
// device. Older software multiplies batches of score matrices with passes over
// the scores in between; scores that are saved for backward count in memory.
// Source of the form: docs/studies/step-time, section 3.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_ATTENTION_COST_H
#define MTPLAN_PLANNER_COST_ATTENTION_COST_H

#include "planner/cost/local_work.h"
#include "planner/machine/software.h"
#include "planner/units.h"

namespace mtplan::planner {

/// One rank's shard of an attention operator. The factors of mtp.attention have
/// fixed names: b and heads g, r; s queries; k keys; d features of a head. An
/// operator without them has no shape.
struct AttentionShape {
  double heads = 1; ///< times samples
  double queries = 1, keys = 1, headSize = 1;
  bool causal = false;
  double scores() const { return heads * queries * keys; }
};
std::optional<AttentionShape> attentionShapeOf(const Op &op,
                                               const LocalWork &work);

/// Returns a fused kernel's arithmetic, including the extra work on the
/// diagonal and for padded heads.
Flops fusedFlops(const AttentionShape &shape, bool backward,
                 const AttentionKernel &kernel);

/// Returns the time without gaps between kernels.
Seconds attentionTime(const Op &op, const LocalWork &work, const Device &device,
                      const Software &software, Precision precision);

/// Returns a lower bound of attentionTime for a share 1 / ranks of the whole
/// operator.
Seconds attentionLowerBound(const Op &op, const LocalWork &unsharded,
                            const Device &device, const Software &software,
                            Precision precision);

/// Returns the bytes that one rank's shard of a forward operator saves for
/// backward beside its operands and results: the scores; 0 for every other
/// operator and kernel.
Bytes savedScores(const Op &op, const LocalWork &work, const Software &software,
                  Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_ATTENTION_COST_H
