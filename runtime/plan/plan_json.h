//===- plan_json.h - Executable plans as text and as files ------*- C++ -*-===//
//
// docs/executable-plan.md describes the format. The same plan always gives the
// same bytes, and reading what was written gives the plan back. A reader
// accepts types and ranges as in plan.h; plan_check.h judges whether the plan
// is consistent.
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
/// of the error or, where the text is not JSON, with "line:column".
class PlanError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// \throws PlanError for what JSON cannot hold: a number that is not finite, or
/// text that is not UTF-8.
std::string planText(const Plan &plan);

/// \throws PlanError
Plan parsePlan(const std::string &text);

/// Replaces the file atomically: a reader sees the old plan or the new one.
/// \throws PlanError whose text starts with the path
void writePlanFile(const std::filesystem::path &path, const Plan &plan);

/// \throws PlanError whose text starts with the path
Plan readPlanFile(const std::filesystem::path &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_JSON_H
