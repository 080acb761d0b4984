//===- compute_cost.h - Time of one operator on one rank --------*- C++ -*-===//
//
// Products by tiles and waves (product_cost.h) or by memory, whichever takes
// longer; attention by kernel (attention_cost.h); everything else is bound by
// memory, at the bytes per element that the software's kernels move. Plus the
// gap between kernels.
// Source of the form: Williams et al. 2009 (roofline); docs/studies/step-time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_COMPUTE_COST_H
#define MTPLAN_PLANNER_COST_COMPUTE_COST_H

#include "planner/cost/op_run.h"
#include "planner/graph/strategy.h"
#include "planner/machine/software.h"

namespace mtplan::planner {

/// Time of `op`, run as `run` says, under `strategy` on the busiest rank. What
/// may be done at once with the product before it is.
/// \param tensors  the segment's tensors, which op's uses index
Seconds computeTime(const Op &op, const OpRun &run, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software);

/// What it takes more where that product hands over its result as `made`: 0 if
/// that is how it is taken, or if the two never are one.
Seconds apartTime(const Op &op, const OpRun &run, const Strategy &strategy,
                  const Layout &made, const std::vector<Tensor> &tensors,
                  const Mesh &mesh, const Machine &machine,
                  const Software &software);

/// The same of an operator on its own.
Seconds computeTime(const Op &op, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software,
                    Precision precision);

/// No strategy on `ranks` ranks is faster: the work divided evenly at the peak
/// the model allows. The admissible bound of the search.
Seconds computeFloor(const Op &op, const OpRun &run,
                     const std::vector<Tensor> &tensors, int ranks,
                     const Machine &machine, const Software &software);
Seconds computeFloor(const Op &op, const std::vector<Tensor> &tensors,
                     int ranks, const Machine &machine,
                     const Software &software, Precision precision);

/// What `op` keeps for backward on one rank beside its operands and results:
/// the scores of attention that stores them.
Bytes savedBeside(const Op &op, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh,
                  const Software &software, Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_COMPUTE_COST_H
