//===- compute_ops.td - The base of every operator ------------------------===//

#ifndef MTPLAN_IR_COMPUTE_OPS
#define MTPLAN_IR_COMPUTE_OPS

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mtp_attrs.td"
include "mtp_interfaces.td"

// A pure, labelled operator that answers ComputeOp. Its strategy, once planned,
// is the discardable attribute `mtp.strategy`. Shapes inside an operator agree
// both globally and, once partitioned, locally, because attributes never repeat
// a number that a split would change.
class Mtp_ComputeOpBase<string mnemonic, list<Trait> traits = []>
    : Mtp_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<Mtp_ComputeOp,
        ["getFactorRule", "getFlops", "buildGradient"]>]> {
  let hasVerifier = 1;
  // How the planner prices the operator: a case of ir/cost_class.h.
  string costClass = "traffic";
  let extraClassDeclaration = !strconcat(
      "::mtplan::ir::CostClass getCostClass() {\n",
      "  return ::mtplan::ir::CostClass::", costClass, ";\n}\n");
}

// A number that may not be 0, negative or NaN.
def Mtp_PositiveF64 : ConfinedAttr<F64Attr, [
    AttrConstraint<CPred<"llvm::cast<::mlir::FloatAttr>($_self)"
                         ".getValueAsDouble() > 0.0">, "above 0">]>;

#endif // MTPLAN_IR_COMPUTE_OPS
