//===- executable_plan.h - A placed step as a plan to run -------*- C++ -*-===//
//
// codegen/ answers the question: how is a step written down? It translates a
// partitioned module with decisions and places into runtime/plan, one
// instruction for each operation or fused group. Any module that has the
// attributes can be translated, whoever wrote it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
#define MTPLAN_CODEGEN_EXECUTABLE_PLAN_H

#include <string>

#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Fails with a diagnostic if an operation has no place or no stream, or if no
/// instruction can stand for it.
mlir::FailureOr<runtime::Plan> executablePlanOf(mlir::ModuleOp placed,
                                                const std::string &model);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
