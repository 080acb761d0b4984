//===- placement.h - Kernel calls on the shards of a rank -------*- C++ -*-===//
//
// The interpreter runs an operator as a call of its reference kernel. A
// placement lists the mesh axes that shard each dimension of the operator's
// tensors, so that kernels need no factor names. The strategy and the factor
// rule determine the placement.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_PLACEMENT_H
#define MTPLAN_IR_INTERPRET_PLACEMENT_H

#include <string>
#include <utility>
#include <vector>

#include "ir/interpret/ranks.h"
#include "runtime/reference/kernels.h"

namespace mtplan::ir {

using KernelCall = runtime::reference::Call;

runtime::reference::Kernel kernelOf(mlir::Operation *op);

/// Returns the names and values of an operator's attributes that are numbers,
/// flags or strings. Layouts and strategies are omitted.
std::vector<std::pair<std::string, runtime::reference::Attributes::Value>>
kernelAttributesOf(mlir::Operation *op);

/// Returns a call with the operator's attributes, the given operands, and
/// results filled with zeros. No tensor of the call is sharded. The operands
/// must outlive the call.
KernelCall callOf(mlir::Operation *op,
                  llvm::ArrayRef<const HostTensor *> operands);

std::vector<HostTensor> takeResults(KernelCall &call);

class Placement {
public:
  Placement() = default;
  /// Returns the placement of `op`. Fails, with a diagnostic, if the strategy
  /// names an axis that the mesh lacks or a factor that the operator lacks, or
  /// if the factor rule does not fit the operator's tensors.
  static mlir::FailureOr<Placement> of(ComputeOp op, const MeshView &mesh);

  void place(KernelCall &call, const MeshView &mesh, std::int64_t rank) const;

  /// Lists the axes that shard each dimension of each tensor, major axis first.
  /// An empty list means that no tensor is sharded.
  using TensorAxes = std::vector<std::vector<llvm::SmallVector<int, 2>>>;
  const TensorAxes &operandAxes() const { return operands; }
  const TensorAxes &resultAxes() const { return results; }

private:
  TensorAxes operands, results;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_PLACEMENT_H
