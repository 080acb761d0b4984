//===- executable_plan.h - A placed step as a plan to run -------*- C++ -*-===//
//
// Translates a partitioned module with decisions (ir/decisions.h) and offsets
// (PlaceAttr) to a runtime::Plan. A fused group becomes one instruction, and so
// does nearly every other operation. Any module that has these attributes can
// be translated.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
#define MTPLAN_CODEGEN_EXECUTABLE_PLAN_H

#include <string>

#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns the plan of `placed`, with the name `model`. Fails, with a
/// diagnostic, if an operation lacks a PlaceAttr or a stream, or cannot be
/// translated.
mlir::FailureOr<runtime::Plan> executablePlanOf(mlir::ModuleOp placed,
                                                const std::string &model);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
