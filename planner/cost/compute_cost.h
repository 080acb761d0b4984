//===- compute_cost.h - Time of one operator on one rank --------*- C++ -*-===//
//
// A product takes the longer of its tiles and waves and its memory traffic;
// attention is priced by kernel (kernel_cost.h); every other operator is
// memory-bound, at the bytes per element that the software's kernels move. The
// gap between kernels is added. Source of the form: Williams et al. 2009
// (roofline); docs/studies/step-time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_COMPUTE_COST_H
#define MTPLAN_PLANNER_COST_COMPUTE_COST_H

#include "planner/cost/op_run.h"
#include "planner/graph/strategy.h"

namespace mtplan::planner {

/// Returns the time of `op`, executed as `run` says, under `strategy` on the
/// busiest rank. An operator that may be fused counts as fused.
/// \param tensors  the segment's tensors, which op's uses index
Seconds computeTime(const Op &op, const OpRun &run, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software);

/// Returns the extra time of `op` when its producer makes the operand in the
/// layout `made`: 0 if the two are fused then, or never.
Seconds apartTime(const Op &op, const OpRun &run, const Strategy &strategy,
                  const Layout &made, const std::vector<Tensor> &tensors,
                  const Mesh &mesh, const Machine &machine,
                  const Software &software);

/// Returns the time of an operator on its own.
Seconds computeTime(const Op &op, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software,
                    Precision precision);

/// Returns a time that no strategy on `ranks` ranks beats: the work divided
/// evenly, at the best rate of the model. It is an admissible bound.
Seconds computeLowerBound(const Op &op, const OpRun &run,
                          const std::vector<Tensor> &tensors, int ranks,
                          const Machine &machine, const Software &software);
Seconds computeLowerBound(const Op &op, const std::vector<Tensor> &tensors,
                          int ranks, const Machine &machine,
                          const Software &software, Precision precision);

/// Returns the bytes that `op` saves for backward on one rank beside its
/// operands and results: the scores of attention that stores them.
Bytes savedBeside(const Op &op, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh,
                  const Software &software, Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_COMPUTE_COST_H
