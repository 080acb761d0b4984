//===- op_run.h - How software runs an operator -----------------*- C++ -*-===//
//
// An OpRun says how the software runs one operator: in which precision, with
// which casts, and fused or batched with which neighbours. An OpRun depends on
// the segment, but not on the strategy.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_OP_RUN_H
#define MTPLAN_PLANNER_COST_OP_RUN_H

#include "planner/graph/op_graph.h"
#include "planner/machine/software.h"

namespace mtplan::planner {

struct OpRun {
  Precision precision = Precision::bf16; ///< precision of a product's operands
  /// Gives the size of the batched product that contains this product, relative
  /// to this product alone: the columns or, if `batchesSums`, the length of the
  /// contraction. Software can batch products that read one input and products
  /// whose results are summed.
  double batched = 1.0;
  bool batchesSums = false;
  /// Says whether the operator is an addition that a batched product includes
  /// in its contraction.
  bool inProduct = false;
  /// Counts the accesses to the fused operand that fusion saves: 1 is the
  /// operator's read, 2 includes the producer's write, and 0 means that the
  /// operator is never fused with the producer.
  int savedPasses = 0;
  /// These are the bytes that casts move per 16-bit element: `firstCast` of the
  /// first operand, `secondCast` of the second.
  double firstCast = 0.0, secondCast = 0.0;
  /// Counts the tiles into which the operator is cut. The tiles run one after
  /// another. `along` selects the factors that are cut: m, n, k or batch.
  int tiles = 1;
  std::vector<int> Op::*along = nullptr;
  double slowdown = 1.0; ///< slowest device's time / mean device's time
};

/// Returns the run of each operator of `segment`. With fp8, only the products
/// of layers (isLayer) use fp8, and all other operators use bf16.
/// \param devices  the number of devices that run a step; the slowest of them
/// sets the time
std::vector<OpRun> opRunsOf(const SegmentGraph &segment, const Device &device,
                            const Software &software, Precision precision,
                            int devices);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_OP_RUN_H
