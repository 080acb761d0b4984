//===- compute_ops.td - The base of every operator ------------------------===//

#ifndef MTPLAN_IR_COMPUTE_OPS
#define MTPLAN_IR_COMPUTE_OPS

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mtp_attrs.td"
include "mtp_interfaces.td"

// An operator: pure, labelled, answers ComputeOp. Its strategy, once planned,
// is the discardable attribute `mtp.strategy`. Shapes inside an operator agree
// both globally and, once partitioned, locally: attributes never repeat a
// number that a split would change.
class Mtp_ComputeOpBase<string mnemonic, list<Trait> traits = []>
    : Mtp_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<Mtp_ComputeOp,
        ["getFactorRule", "getFlops", "buildGradient"]>]> {
  let hasVerifier = 1;
}

#endif // MTPLAN_IR_COMPUTE_OPS
