//===- op_run.h - How software runs an operator -----------------*- C++ -*-===//
//
// The part of a price that depends on the operator's neighbours: the precision
// of its product, whether it is fused or batched with others, what it casts. It
// follows from the segment alone.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_OP_RUN_H
#define MTPLAN_PLANNER_COST_OP_RUN_H

#include "planner/graph/op_graph.h"
#include "planner/machine/software.h"

namespace mtplan::planner {

struct OpRun {
  Precision precision = Precision::bf16; ///< of the operands of its product
  /// Products of one input, or into one sum, run as one batched product: its
  /// columns, or the length of its contraction, over this product's.
  double batched = 1.0;
  bool batchesSums = false; ///< whether `batched` is of contractions
  /// A sum that a batched product computes in its contraction.
  bool inProduct = false;
  /// How many times the value between the operator and its producer does not
  /// pass through memory if they are fused; 0: they never are.
  int savedPasses = 0;
  /// Bytes moved by casts, per element of the first and of the second operand.
  double firstCast = 0.0, secondCast = 0.0;
  /// Products in sequence, each of a tile along `along`: m, n, k or batch of
  /// the operator.
  int tiles = 1;
  std::vector<int> Op::*along = nullptr;
  double pace = 1.0; ///< the slowest device's time over a mean device's
};

/// Returns the runs by operator of `segment`. fp8 applies to products of
/// repeated segments; all else is then in bf16.
/// \param devices  that take part in a step: the slowest sets the pace
std::vector<OpRun> opRunsOf(const SegmentGraph &segment, const Device &device,
                            const Software &software, Precision precision,
                            int devices);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_OP_RUN_H
