//===- compute_cost.h - Time of one operator on one rank --------*- C++ -*-===//
//
// Prices operators by the roofline model. The time of a product is the longer
// of its arithmetic and its memory traffic. The price of attention depends on
// its kernel (kernel_cost.h). Every other operator is memory-bound; the
// software's figures set the bytes per element. Gaps between kernels are added.
// The model comes from Williams et al. 2009 (roofline) and
// docs/studies/step-time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_COST_COMPUTE_COST_H
#define MTPLAN_PLANNER_COST_COMPUTE_COST_H

#include "planner/cost/op_run.h"
#include "planner/graph/strategy.h"

namespace mtplan::planner {

/// Returns the time of `op` on the busiest rank under `strategy`, with the
/// precision, batching and fusion of `run`. An operator that may be fused is
/// priced as fused.
/// \param tensors  the segment's tensors, to which the operands and results of
/// `op` refer by index
Seconds computeTime(const Op &op, const OpRun &run, const Strategy &strategy,
                    const std::vector<Tensor> &tensors, const Mesh &mesh,
                    const Machine &machine, const Software &software);

/// Returns the number of kernels that `op` launches.
double launchesOf(const Op &op, const OpRun &run, const Device &device,
                  const Software &software);

/// Returns the time to add to computeTime if the producer of the fused operand
/// gives its result the layout `made`. The two are fused only if `made` is the
/// layout that `op` reads. The result is 0 if the two operators are fused or
/// can never be fused.
Seconds unfusedTime(const Op &op, const OpRun &run, const Strategy &strategy,
                    const Layout &made, const std::vector<Tensor> &tensors,
                    const Mesh &mesh, const Machine &machine,
                    const Software &software);

/// Returns a lower bound of computeTime over all strategies on `ranks` ranks.
/// The bound assumes that the work is divided evenly and runs at the best
/// modelled rate.
Seconds computeLowerBound(const Op &op, const OpRun &run,
                          const std::vector<Tensor> &tensors, int ranks,
                          const Machine &machine, const Software &software);

/// Returns the bytes that `op` saves for backward on one rank in addition to
/// its operands and results: the attention scores, if the kernel stores them,
/// and what the software keeps (Pass::kept, FrameworkMemory::crossEntropy).
Bytes savedBeside(const Op &op, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh,
                  const Software &software, Precision precision);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_COST_COMPUTE_COST_H
