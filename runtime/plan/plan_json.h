//===- plan_json.h - Executable plans as text and as files ------*- C++ -*-===//
//
// docs/executable-plan.md describes the format. Equal plans have equal bytes,
// and reading a written plan gives an equal plan. Reading checks types and
// ranges; checkPlan (plan_check.h) checks consistency.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_JSON_H
#define MTPLAN_RUNTIME_PLAN_PLAN_JSON_H

#include <filesystem>
#include <stdexcept>
#include <string>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Reports a text or file that is no plan. what() starts with the JSON pointer
/// of the error, or with "line:column" if the text is not JSON.
class PlanError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// \throws PlanError for values that JSON cannot hold: non-finite numbers, or
/// text that is not UTF-8
std::string planText(const Plan &plan);

Plan parsePlan(const std::string &text);

/// Writes the file atomically: a reader sees either the old or the new plan.
/// \throws PlanError whose text starts with the path
void writePlanFile(const std::filesystem::path &path, const Plan &plan);

/// \throws PlanError whose text starts with the path
Plan readPlanFile(const std::filesystem::path &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_JSON_H
