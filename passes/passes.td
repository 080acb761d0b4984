//===- passes.td - Every pass, in the order of the pipeline ---------------===//
//
// Only mtplan-opt runs mtp-recompute and mtp-shrink. The pipeline instead calls
// recompute() before mtp-verify-layouts, and proofs call shrink().
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_TD
#define MTPLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

include "partition_passes.td"
include "placement_passes.td"

//===----------------------------------------------------------------------===//
// Any stage before partitioned
//===----------------------------------------------------------------------===//

def ShrinkPass : Pass<"mtp-shrink", "mlir::ModuleOp"> {
  let summary = "Shrinks every dimension to a few elements, for a proof";
  let description = [{
    The result is a module of the same structure that is small enough to be
    interpreted. Every product of mesh axes that divides a dimension also
    divides the shrunk dimension. Dimensions that operators require to be equal
    stay equal. A segment keeps at most two layers.
  }];
}

#endif // MTPLAN_PASSES_TD
