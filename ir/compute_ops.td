//===- compute_ops.td - The interface and the bases of every operator -----===//

#ifndef MTPLAN_IR_COMPUTE_OPS
#define MTPLAN_IR_COMPUTE_OPS

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mtp_dialect.td"

def Mtp_ComputeOp : OpInterface<"ComputeOp"> {
  let cppNamespace = "::mtplan::ir";
  let description = [{
    An operator of the training step without side effects. The operator itself
    defines its factors, operation count and gradient, so that a pass needs no
    list of operators.
  }];
  let methods = [
    InterfaceMethod<"Name of the operator in messages and constraints",
      "::llvm::StringRef", "getLabel">,
    InterfaceMethod<"Factors (index names), and the dimensions that have them",
      "::mtplan::ir::FactorRule", "getFactorRule">,
    InterfaceMethod<
      "Floating-point operations of one execution, where a multiply-add counts "
      "as two",
      "double", "getFlops">,
    InterfaceMethod<"Class of the operator that determines its predicted time",
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

// Is the base of pure, labelled operators that implement ComputeOp. A planned
// operator has its strategy in the discardable attribute `mtp.strategy`. The
// verifier accepts global shapes and, in a partitioned module, the shapes of
// one rank, because no attribute repeats a size that sharding would change.
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
  // Names the case of CostClass (ir/compute_op.h) that prices the operator.
  string costClass = "traffic";
  let extraClassDeclaration = !strconcat(
      "::mtplan::ir::CostClass getCostClass() {\n",
      "  return ::mtplan::ir::CostClass::", costClass, ";\n}\n");
}

// Is the base of operators without a gradient. `reason` is a C++ expression for
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

// Is the base of operators of a backward half, which have no gradient
// themselves.
class Mtp_GradientOpBase<string mnemonic, list<Trait> traits = []>
    : Mtp_NoGradientOpBase<mnemonic, "kSecondOrder", traits>;

// Rejects 0, negative numbers and NaN.
def Mtp_PositiveF64 : ConfinedAttr<F64Attr, [
    AttrConstraint<CPred<"llvm::cast<::mlir::FloatAttr>($_self)"
                         ".getValueAsDouble() > 0.0">, "above 0">]>;

#endif // MTPLAN_IR_COMPUTE_OPS
