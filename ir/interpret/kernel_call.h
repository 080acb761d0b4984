//===- kernel_call.h - An operator as a reference kernel's call -*- C++ -*-===//

#ifndef MTPLAN_IR_INTERPRET_KERNEL_CALL_H
#define MTPLAN_IR_INTERPRET_KERNEL_CALL_H

#include <vector>

#include "ir/interpret/host_tensor.h"
#include "ir/interpret/mesh_view.h"
#include "ir/mtp.h"
#include "runtime/reference/kernels.h"

namespace mtplan::ir {

using KernelCall = runtime::reference::Call;

/// Returns the reference kernel of an operator, or null if it has none.
runtime::reference::Kernel kernelOf(mlir::Operation *op);

/// Returns a call with the operator's attributes, these operands, and results
/// of zeros. Every tensor is whole. The operands must outlive the call.
KernelCall callOf(mlir::Operation *op,
                  llvm::ArrayRef<const HostTensor *> operands);

/// Moves the results of a call that has run out of it.
std::vector<HostTensor> takeResults(KernelCall &call);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_KERNEL_CALL_H
