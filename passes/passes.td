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
  let summary = "Makes every dimension a few elements, keeping what divides";
  let description = [{
    The result is the smallest module of the same structure in which every split
    of the mesh still divides, so that a proof can interpret it. Dimensions that
    the operators' factors make equal stay equal; repetitions are cut to two
    copies.
  }];
}

#endif // MTPLAN_PASSES_TD
