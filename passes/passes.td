//===- passes.td - Every pass, in the order of the pipeline ---------------===//
//
// Two passes are run by mtplan-opt only; the pipeline and proofs call their
// functions: mtp-recompute before mtp-verify-layouts, and mtp-shrink.
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
  let summary = "Makes every dimension a few elements, keeping what divides";
  let description = [{
    The result is the smallest module of the same structure in which every split
    of the mesh still divides, so that a proof can interpret it. Dimensions that
    the operators' factors make equal stay equal; repetitions are cut to two
    copies.
  }];
}

#endif // MTPLAN_PASSES_TD
