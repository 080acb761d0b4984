//===- op_run.h - How software runs an operator -----------------*- C++ -*-===//
//
// A run is the part of a price that depends on the operator's neighbours: the
// precision of its product, its fusion or batching with others, and its casts.
// It follows from the segment alone.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_OP_RUN_H
#define MTPLAN_PLANNER_COST_OP_RUN_H

#include "planner/graph/op_graph.h"
#include "planner/machine/software.h"

namespace mtplan::planner {

/// How one operator runs.
struct OpRun {
  Precision precision = Precision::bf16; ///< of the operands of its product
  /// The columns of a batched product, or the length of its contraction, over
  /// this product's. Products of one input, or into one sum, run as one batched
  /// product.
  double batched = 1.0;
  bool batchesSums = false; ///< whether `batched` is of contractions
  /// Whether the operator is a sum that a batched product computes in its
  /// contraction.
  bool inProduct = false;
  /// The number of passes through memory that fusing the operator with its
  /// producer saves; 0: the two are never fused.
  int savedPasses = 0;
  /// Bytes moved by casts, per element of the first and of the second operand.
  double firstCast = 0.0, secondCast = 0.0;
  /// The number of products in sequence, each of a tile along `along`: m, n, k
  /// or batch of the operator.
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
