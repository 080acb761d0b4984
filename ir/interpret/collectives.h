//===- collectives.h - What ranks pass to each other ------------*- C++ -*-===//

#ifndef MTPLAN_IR_INTERPRET_COLLECTIVES_H
#define MTPLAN_IR_INTERPRET_COLLECTIVES_H

#include "ir/interpret/host_tensor.h"
#include "ir/interpret/mesh_view.h"

namespace mtplan::ir {

/// The axis of a collective, or null for any other operator.
mlir::StringAttr axisOfCollective(mlir::Operation *op);

/// Runs a collective on all ranks. Sums are taken in axis order, on every rank
/// the same. Fails, with a diagnostic, if the mesh lacks the axis or a
/// dimension does not divide.
mlir::FailureOr<std::vector<HostTensor>>
runCollective(mlir::Operation *op, const std::vector<HostTensor> &inputs,
              const MeshView &mesh);

/// Adds `term` to `total`, or takes the larger of both; NaN stays NaN.
void reduceInto(HostTensor &total, const HostTensor &term, bool max);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_COLLECTIVES_H
