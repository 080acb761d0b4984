//===- compute_cost.h - Time of one operator on one rank --------*- C++ -*-===//
//
// Roofline with tile and wave quantisation: a matrix product takes as many
// waves of output tiles as the device's units need, at the rate large products
// reach, or the time its operands and results take through memory, whichever is
// longer; everything else is bound by memory. Plus one launch.
// Source of the form: Williams et al. 2009 (roofline); NVIDIA, "Matrix
// multiplication background user's guide" (tile and wave quantisation).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_COMPUTE_COST_H
#define MTPLAN_PLANNER_COST_COMPUTE_COST_H

#include "planner/graph/op_graph.h"
#include "planner/graph/strategy.h"
#include "planner/machine/machine.h"

namespace mtplan::planner {

/// Time of `op` under `strategy` on the busiest rank.
/// \param tensors  the segment's tensors, which op's uses index
Seconds computeTime(const Op &op, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, Precision precision);

/// No strategy on `ranks` ranks is faster: the work divided evenly at the peak
/// the model allows. The admissible bound of the search.
Seconds computeFloor(const Op &op, const std::vector<Tensor> &tensors,
                     int ranks, const Machine &machine, Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_COMPUTE_COST_H
