//===- mtp_interfaces.td - What every operator answers for itself ---------===//

#ifndef MTPLAN_IR_MTP_INTERFACES
#define MTPLAN_IR_MTP_INTERFACES

include "mlir/IR/OpBase.td"

def Mtp_ComputeOp : OpInterface<"ComputeOp"> {
  let cppNamespace = "::mtplan::ir";
  let description = [{
    An operator of the training step: it computes its results from its operands
    and nothing else, and it answers for its own factors, work and gradient, so
    that no pass knows operators by name.
  }];
  let methods = [
    InterfaceMethod<"Name by which people and pins refer to the operator",
      "::llvm::StringRef", "getLabel">,
    InterfaceMethod<"Index names of the operator and where each one runs",
      "::mtplan::ir::FactorRule", "getFactorRule">,
    InterfaceMethod<
      "Floating-point operations of one execution, a multiply-add being two",
      "double", "getFlops">,
    InterfaceMethod<"What the time of the operator depends on",
      "::mtplan::ir::CostClass", "getCostClass", (ins), "",
      [{ return ::mtplan::ir::CostClass::traffic; }]>,
    InterfaceMethod<[{
        Builds the operators that turn the gradients of the results into
        gradients of the operands. Fails, with a diagnostic, for operators that
        have no gradient.
      }],
      "::llvm::LogicalResult", "buildGradient",
      (ins "::mtplan::ir::GradientBuilder &":$gradients)>,
    InterfaceMethod<"Bytes of operands and results, each counted once",
      "int64_t", "getBytes", (ins), "",
      [{ return ::mtplan::ir::bytesOfUses($_op.getOperation()); }]>
  ];
}

#endif // MTPLAN_IR_MTP_INTERFACES
