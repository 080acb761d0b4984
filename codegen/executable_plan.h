//===- executable_plan.h - A placed step as a plan to run -------*- C++ -*-===//
//
// codegen/ answers: how is it written down? From a module that the last pass
// has left, partitioned, with tasks and places, to runtime/plan. Nothing is
// decided here: any module that has what is asked for can be written, by hand
// or not.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
#define MTPLAN_CODEGEN_EXECUTABLE_PLAN_H

#include <string>

#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Fails, with a diagnostic, if an operation has no place, or is one that no
/// instruction stands for.
/// \param overlapsReduces  see overlapped_reduces.h
mlir::FailureOr<runtime::Plan> executablePlanOf(mlir::ModuleOp placed,
                                                const std::string &model,
                                                bool overlapsReduces = false);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_EXECUTABLE_PLAN_H
