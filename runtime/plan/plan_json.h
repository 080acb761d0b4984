//===- plan_json.h - Executable plans as text and as files ------*- C++ -*-===//
//
// docs/executable-plan.md is the format. The same plan is always the same
// bytes, and reading what was written gives the plan back. What a reader
// accepts has the right types and lies in the ranges of plan.h; whether it all
// fits together is the question of plan_check.h.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_JSON_H
#define MTPLAN_RUNTIME_PLAN_PLAN_JSON_H

#include <filesystem>
#include <stdexcept>
#include <string>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// A text or file that is no plan. what() starts with the JSON pointer of the
/// fault, or, where the text is not JSON, with "line:column".
class PlanError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// \throws PlanError for what JSON cannot say: a number that is not finite,
/// text that is not UTF-8.
std::string planText(const Plan &plan);

/// \throws PlanError
Plan parsePlan(const std::string &text);

/// Replaces the file at once: whoever reads it sees all of the old plan or all
/// of the new one.
/// \throws PlanError, its text starting with the path
void writePlanFile(const std::filesystem::path &path, const Plan &plan);

/// \throws PlanError, its text starting with the path
Plan readPlanFile(const std::filesystem::path &path);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_JSON_H
