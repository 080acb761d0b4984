//===- placement.h - Where a rank stands in an operator ---------*- C++ -*-===//
//
// Tells which mesh axes split each dimension of an operator's operands and
// results, by its strategy and its factor rule. Kernels then need no factor
// names.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_PLACEMENT_H
#define MTPLAN_IR_INTERPRET_PLACEMENT_H

#include "ir/interpret/kernel_call.h"

namespace mtplan::ir {

class Placement {
public:
  /// Leaves every tensor whole.
  Placement() = default;
  /// Fails, with a diagnostic, if the strategy names an axis that the mesh
  /// lacks, or the rule does not fit the operator.
  static mlir::FailureOr<Placement> of(ComputeOp op, const MeshView &mesh);

  /// Sets which pieces of the tensors of `call` the rank holds.
  void place(KernelCall &call, const MeshView &mesh, std::int64_t rank) const;

  /// The axes that split each dimension of each tensor, major axis first. If
  /// empty, every tensor is whole.
  using TensorAxes = std::vector<std::vector<llvm::SmallVector<int, 2>>>;
  const TensorAxes &operandAxes() const { return operands; }
  const TensorAxes &resultAxes() const { return results; }

private:
  TensorAxes operands, results;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_PLACEMENT_H
