//===- executable_plan.h - A placed step as a plan to run -------*- C++ -*-===//
//
// Translates a partitioned module with decisions (ir/decisions.h) and offsets
// (PlaceAttr) to a runtime::Plan. Each fused group, and nearly every other
// operation, becomes one instruction.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
#define MTPLAN_CODEGEN_EXECUTABLE_PLAN_H

#include <string>

#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns the plan of `placed`, with `model` as the name of its model. Fails,
/// with a diagnostic, if an operation lacks a PlaceAttr or a stream, or cannot
/// be translated.
mlir::FailureOr<runtime::Plan> executablePlanOf(mlir::ModuleOp placed,
                                                const std::string &model);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
