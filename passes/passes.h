//===- passes.h - From a model to the program of one rank -------*- C++ -*-===//
//
// Each stage of the rewriting has a folder, and verify/ holds the proofs. A
// verification pass ends each stage and rejects a result that breaks the
// stage's guarantees. Memory has no such pass; runtime::checkPlan checks it in
// the executable plan. moduleOf() in tools/driver/pipeline.cpp runs the stages
// up to partitioned, and pipelines.cpp runs the stages from there to placed.
//
//   differentiate/  backward halves, update
//   layout/         translation to and from the graphs and plans of planner/
//   communicate/    local shapes and collectives
//   fuse/           fused kernels, batches of products
//   schedule/       recomputation, a program for every stage, the runs that
//                   begin gradient sums, overlap, update order, streams,
//                   launches
//   memory/         an arena and an offset for every tensor
//   verify/         proofs: shrinking, interpreting, comparing
//
// Only layout/ builds the planner's graph and writes plans into IR. schedule/
// and verify/ read the planned graph and segment plans (recompute.h), the parts
// of the pipeline (stages.h) and the kind of schedule (stage_contents.h,
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
