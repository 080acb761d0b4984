//===- kernel.h - What one rank's execution of an operator sees -*- C++ -*-===//
//
// Kernels are plain loops over doubles, one file per family of operators. They
// know shapes and, where an operator's result depends on where in the global
// tensor a rank stands (dropout masks, causal masks, vocabulary ids), the
// piece a rank has of each dimension, and nothing of meshes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_KERNEL_H
#define MTPLAN_IR_INTERPRET_KERNEL_H

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "llvm/ADT/StringMap.h"

#include "ir/interpret/host_tensor.h"
#include "ir/interpret/mesh_view.h"
#include "ir/mtp.h"
#include "runtime/random/draws.h"

namespace mtplan::ir {

using runtime::Moment, runtime::Stream;

/// Pieces of every dimension of every operand (or result).
using TensorSpans = std::vector<std::vector<Span>>;

/// One execution on one rank. Results come in with their shapes and zeros.
struct KernelCall {
  Moment moment;
  std::vector<const HostTensor *> operands;
  std::vector<HostTensor> results;
  TensorSpans operandSpans, resultSpans;
};

using Kernel = std::function<void(mlir::Operation *, KernelCall &)>;

/// Kernels by operator name.
class KernelTable {
public:
  template <typename Op> void add(void (*kernel)(Op, KernelCall &)) {
    kernels[Op::getOperationName()] = [kernel](mlir::Operation *op,
                                               KernelCall &call) {
      kernel(mlir::cast<Op>(op), call);
    };
  }
  /// Null if nobody knows the operator.
  const Kernel *find(mlir::Operation *op) const {
    auto found = kernels.find(op->getName().getStringRef());
    return found == kernels.end() ? nullptr : &found->second;
  }
  /// All families.
  static const KernelTable &get();

private:
  llvm::StringMap<Kernel> kernels;
};

void addLinearKernels(KernelTable &table);
void addEmbeddingKernels(KernelTable &table);
void addPointwiseKernels(KernelTable &table);
void addNormKernels(KernelTable &table);
void addAttentionKernels(KernelTable &table);
void addLossKernels(KernelTable &table);
void addMoeKernels(KernelTable &table);
void addPositionKernels(KernelTable &table);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_KERNEL_H
