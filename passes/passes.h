//===- passes.h - How is a step rewritten? ----------------------*- C++ -*-===//
//
// passes/ answers: how does a model become the program of one rank? A folder a
// stage, each ending in a gate that verifies its promise:
//
//   differentiate/  backward halves, update
//   layout/         the bridge to planner/, applying what it chose
//   communicate/    local shapes and collectives
//   fuse/           what one kernel computes
//   schedule/       recomputation, a program for every stage, what begins sums,
//                   streams
//   memory/         a place for every tensor
//   verify/         proofs: shrinking, interpreting, mutating
//
// Neighbours: ir/ (what is rewritten) and planner/ (what chooses). Only
// layout/ knows the planner's graph.
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
