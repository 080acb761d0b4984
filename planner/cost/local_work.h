//===- local_work.h - One rank's share of an operator -----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_COST_LOCAL_WORK_H
#define MTPLAN_PLANNER_COST_LOCAL_WORK_H

#include <vector>

#include "planner/graph/op_graph.h"
#include "planner/graph/strategy.h"

namespace mtplan::planner {

/// An operator split by a strategy over a mesh or, without a strategy, unsplit.
class LocalWork {
public:
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors)
      : op(theOp), tensors(theTensors) {}
  LocalWork(const Op &theOp, const std::vector<Tensor> &theTensors,
            const Strategy &theStrategy, const Mesh &theMesh)
      : op(theOp), tensors(theTensors), strategy(&theStrategy), mesh(&theMesh) {
  }

  /// Returns the number of ranks that split `factor`.
  double shardsOf(int factor) const;
  /// Returns the number of contiguous runs. Context ranks have an early and a
  /// late slice of every sequence, so that a mask removes as much from each.
  double runsOf(int factor) const;
  /// Returns the local size of `factor`, or of several together.
  double extentOf(int factor) const;
  double extentOf(const std::vector<int> &factors) const;
  /// Returns the work of the busiest rank.
  double flops() const;
  /// Returns the bytes of the local shards of all operands and results that
  /// pass through memory.
  double traffic() const;
  /// Returns the bytes of the largest local shard of an operand or result.
  double largest() const;
  /// Returns the bytes of the local shard of what `use` touches.
  double bytesOf(const Use &use) const;

private:
  const Op &op;
  const std::vector<Tensor> &tensors;
  const Strategy *strategy = nullptr;
  const Mesh *mesh = nullptr;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_LOCAL_WORK_H
