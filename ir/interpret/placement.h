//===- placement.h - Where a rank stands in an operator ---------*- C++ -*-===//
//
// From an operator's strategy and its factors: which mesh axes split each
// dimension of its operands and results. Kernels then need no factor names.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_PLACEMENT_H
#define MTPLAN_IR_INTERPRET_PLACEMENT_H

#include "ir/interpret/kernel.h"

namespace mtplan::ir {

class Placement {
public:
  /// Everything whole.
  Placement() = default;
  /// Fails, with a diagnostic, if the strategy names an axis the mesh has not
  /// or the rule does not fit the operator.
  static mlir::FailureOr<Placement> of(ComputeOp op, const MeshView &mesh);

  /// Fills the spans of `call` for `rank`; the tensors are there already.
  void place(KernelCall &call, const MeshView &mesh, std::int64_t rank) const;

  /// Per tensor and dimension, the axes that split it, major first. Empty:
  /// everything is whole.
  using TensorAxes = std::vector<std::vector<llvm::SmallVector<int, 2>>>;
  const TensorAxes &operandAxes() const { return operands; }
  const TensorAxes &resultAxes() const { return results; }

private:
  TensorAxes operands, results;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_PLACEMENT_H
