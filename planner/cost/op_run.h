//===- op_run.h - How software runs an operator -----------------*- C++ -*-===//
//
// A run is the part of a price that depends on the operator's neighbours: the
// precision of its product, its fusion or batching with others, and its casts.
// A run depends on the segment and not on the strategy.
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
  /// These are the bytes that casts move, per 16-bit element of the first and
  /// of the second operand.
  double firstCast = 0.0, secondCast = 0.0;
  /// Counts the tiles along the operator's m, n, k or batch factors, which
  /// `along` selects. The tiles are computed one after another.
  int tiles = 1;
  std::vector<int> Op::*along = nullptr;
  double slowdown = 1.0; ///< slowest device's time / mean device's time
};

/// Returns the run of each operator of `segment`. fp8 applies only to products
/// of layers (isLayer); every other operator then uses bf16.
/// \param devices  the devices of a step, of which the slowest sets the time
std::vector<OpRun> opRunsOf(const SegmentGraph &segment, const Device &device,
                            const Software &software, Precision precision,
                            int devices);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_OP_RUN_H
