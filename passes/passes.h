//===- passes.h - How is a step rewritten? ----------------------*- C++ -*-===//
//
// passes/ answers: how does a model become the program of one rank? There is a
// folder for each stage, and verify/. Each stage ends in a gate, which changes
// nothing and rejects a result that breaks the stage's promise. Gates are
// passes, except that of memory, which is runtime::checkPlan on the executable
// plan. The order is that of tools/driver/pipeline.cpp up to partitioned
// (moduleOf), and that of pipelines.cpp from there to placed.
//
//   differentiate/  backward halves, update
//   layout/         the bridge to planner/, applying what it chose
//   communicate/    local shapes and collectives
//   fuse/           what one kernel computes, batches of products
//   schedule/       recomputation, a program for every stage, what begins sums,
//                   overlap, the order of the update, streams, launches
//   memory/         a place for every tensor
//   verify/         proofs: shrinking, interpreting, comparing
//
// Neighbours: ir/ (what is rewritten) and planner/ (what chooses). Only layout/
// builds the planner's graph and writes layouts into IR. schedule/ and verify/
// read what was planned: the graph with its segments' plans (recompute.h), the
// parts of the pipeline (stages.h), the kind of schedule (stage_contents.h,
// prove.h).
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_PASSES_H
#define MTPLAN_PASSES_PASSES_H

#include "mlir/Pass/Pass.h"

#include "ir/mtp.h"

namespace mtplan::passes {

#define GEN_PASS_DECL
#include "passes/passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/passes.h.inc"

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_PASSES_H
