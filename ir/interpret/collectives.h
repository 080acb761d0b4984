//===- collectives.h - What ranks pass to each other ------------*- C++ -*-===//

#ifndef MTPLAN_IR_INTERPRET_COLLECTIVES_H
#define MTPLAN_IR_INTERPRET_COLLECTIVES_H

#include "ir/interpret/host_tensor.h"
#include "ir/interpret/mesh_view.h"

namespace mtplan::ir {

/// Returns the axis of a collective, or null for any other operator.
mlir::StringAttr axisOfCollective(mlir::Operation *op);

/// Runs a collective on all ranks. Every rank adds the terms in the order of
/// the axis. Fails, with a diagnostic, if the mesh lacks the axis or a
/// dimension does not divide.
mlir::FailureOr<std::vector<HostTensor>>
runCollective(mlir::Operation *op, const std::vector<HostTensor> &inputs,
              const MeshView &mesh);

/// Adds `term` to `total`, or keeps the larger of both. A NaN stays a NaN.
void reduceInto(HostTensor &total, const HostTensor &term, bool max);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_COLLECTIVES_H
