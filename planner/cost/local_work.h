//===- local_work.h - One rank's share of an operator -----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_COST_LOCAL_WORK_H
#define MTPLAN_PLANNER_COST_LOCAL_WORK_H

#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/graph/strategy.h"

namespace mtplan::planner {

/// An operator cut up by a strategy over a mesh; or, without one, whole.
class LocalWork {
public:
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors)
      : op(theOp), tensors(theTensors) {}
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors,
            const Strategy &theStrategy, const Mesh &theMesh)
      : op(theOp), tensors(theTensors), strategy(&theStrategy), mesh(&theMesh) {
  }

  /// Ranks that share `factor`.
  double piecesOf(int factor) const;
  /// The same of ranks that hold neighbours. Context ranks have an early piece
  /// and a late one of every sequence, so that a mask takes as much from each.
  double runsOf(int factor) const;
  /// Local size of `factor`, and of several together.
  double extentOf(int factor) const;
  double extentOf(const std::vector<int> &factors) const;
  /// Work of the busiest rank.
  double flops() const;
  /// Bytes of the local pieces of all operands and results that pass through
  /// memory.
  double traffic() const;
  /// Bytes of the largest local piece of an operand or result.
  double largest() const;
  /// Bytes of the local piece of what `use` touches.
  double bytesOf(const Use &use) const;

private:
  const Op &op;
  const std::vector<Tensor> &tensors;
  const Strategy *strategy = nullptr;
  const Mesh *mesh = nullptr;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_LOCAL_WORK_H
