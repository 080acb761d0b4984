//===- compute_ops.td - The interface and the bases of every operator -----===//

#ifndef MTPLAN_IR_COMPUTE_OPS
#define MTPLAN_IR_COMPUTE_OPS

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mtp_dialect.td"

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

// The base of pure, labelled operators that implement ComputeOp. A planned
// operator has its strategy in the discardable attribute `mtp.strategy`. The
// verifier accepts global shapes and, once partitioned, the shapes of one rank,
// because no attribute repeats a size that sharding would change.
class Mtp_ComputeOpBase<string mnemonic, list<Trait> traits = []>
    : Mtp_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<Mtp_ComputeOp,
        ["getFactorRule", "getFlops", "buildGradient"]>]> {
  let hasVerifier = 1;
  let results = (outs AnyRankedTensor:$result);
  // The text form is "label" (operands) attributes : types.
  string head = "$label";
  string inputs = "$input";
  string types = "functional-type(operands, results)";
  let assemblyFormat = !strconcat(head, " `(` ", inputs,
                                  " `)` attr-dict `:`\n", types);
  // The case of CostClass (ir/compute_op.h) that prices the operator.
  string costClass = "traffic";
  let extraClassDeclaration = !strconcat(
      "::mtplan::ir::CostClass getCostClass() {\n",
      "  return ::mtplan::ir::CostClass::", costClass, ";\n}\n");
}

// The base of operators without a gradient. `reason` is a C++ expression for
// the end of the error message.
class Mtp_NoGradientOpBase<string mnemonic, string reason,
                           list<Trait> traits = []>
    : Mtp_ComputeOpBase<mnemonic, traits> {
  let extraClassDefinition = !strconcat([{
    ::llvm::LogicalResult
    $cppClass::buildGradient(::mtplan::ir::GradientBuilder &gradients) {
      return rejectGradient(*this, gradients, }], reason, [{);
    }
  }]);
}

// The base of operators of a backward half, which is not differentiated again.
class Mtp_GradientOpBase<string mnemonic, list<Trait> traits = []>
    : Mtp_NoGradientOpBase<mnemonic, "kSecondOrder", traits>;

// Rejects 0, negative numbers and NaN.
def Mtp_PositiveF64 : ConfinedAttr<F64Attr, [
    AttrConstraint<CPred<"llvm::cast<::mlir::FloatAttr>($_self)"
                         ".getValueAsDouble() > 0.0">, "above 0">]>;

#endif // MTPLAN_IR_COMPUTE_OPS
