//===- op_run.h - How software runs an operator -----------------*- C++ -*-===//
//
// What a price depends on beside the operator and its strategy: the precision
// of its product, whether it runs as one with its neighbours, what is cast on
// the way. Known once the segment is.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_OP_RUN_H
#define MTPLAN_PLANNER_COST_OP_RUN_H

#include "planner/graph/op_graph.h"
#include "planner/machine/software.h"

namespace mtplan::planner {

struct OpRun {
  Precision precision = Precision::bf16; ///< of the operands of its product
  /// Products of one input, or into one sum, run as one: all their columns, or
  /// the length of all their contractions, over this one's.
  double joined = 1.0;
  bool joinsSum = false;  ///< `joined` is of contractions
  bool inProduct = false; ///< a sum that a joined product makes on its way
  /// How often less what lies between them passes through memory if the
  /// operator is done at once with the one that it follows; 0: it never is.
  int savedPasses = 0;
  /// Bytes moved by casts, per element of the first operand and of the second.
  double firstCast = 0.0, secondCast = 0.0;
  /// Products run one after another, each of a tile along `along`: m, n, k or
  /// batch of the operator.
  int tiles = 1;
  std::vector<int> Op::*along = nullptr;
  double pace = 1.0; ///< time on the slowest device over that on a mean one
};

/// By operator of `segment`. In fp8 are the products of segments that repeat;
/// all else is in bf16 then.
/// \param devices  that take part in a step: the slowest sets the pace
std::vector<OpRun> opRunsOf(const SegmentGraph &segment, const Device &device,
                            const Software &software, Precision precision,
                            int devices);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_OP_RUN_H
