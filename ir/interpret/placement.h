//===- placement.h - Kernels and the pieces that ranks hold -----*- C++ -*-===//
//
// The interpreter runs an operator as a call of its reference kernel. The
// placement tells which mesh axes split each dimension of the operator's
// tensors, by its strategy and its factor rule, so that kernels need no factor
// names.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_PLACEMENT_H
#define MTPLAN_IR_INTERPRET_PLACEMENT_H

#include <vector>

#include "ir/interpret/ranks.h"
#include "runtime/reference/kernels.h"

namespace mtplan::ir {

using KernelCall = runtime::reference::Call;

/// Returns the reference kernel of an operator, or null if it has none.
runtime::reference::Kernel kernelOf(mlir::Operation *op);

/// Returns a call with the operator's attributes, these operands, and results
/// of zeros. No tensor is split. The operands must outlive the call.
KernelCall callOf(mlir::Operation *op,
                  llvm::ArrayRef<const HostTensor *> operands);

/// Moves the results of a call that has run out of it.
std::vector<HostTensor> takeResults(KernelCall &call);

/// The axes that split the operands and results of an operator.
class Placement {
public:
  /// Splits no tensor.
  Placement() = default;
  /// Fails, with a diagnostic, if the strategy names an axis that the mesh
  /// lacks, or the rule does not fit the operator.
  static mlir::FailureOr<Placement> of(ComputeOp op, const MeshView &mesh);

  /// Sets which pieces of the tensors of `call` the rank holds.
  void place(KernelCall &call, const MeshView &mesh, std::int64_t rank) const;

  /// The axes that split each dimension of each tensor, major axis first. Empty
  /// means that no tensor is split.
  using TensorAxes = std::vector<std::vector<llvm::SmallVector<int, 2>>>;
  const TensorAxes &operandAxes() const { return operands; }
  const TensorAxes &resultAxes() const { return results; }

private:
  TensorAxes operands, results;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_PLACEMENT_H
