//===- report_json.h - The report as JSON -----------------------*- C++ -*-===//
//
// Keys, their order and their meaning: docs/json-output.md. Same input, same
// bytes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_JSON_H
#define MTPLAN_TOOLS_REPORT_JSON_H

#include <string>
#include <vector>

#include "passes/verify/prove.h"
#include "tools/facts.h"

namespace mtplan::tools {

struct JsonStyle {
  bool timings = false;                 ///< fill search.time_s
  const passes::Proof *proof = nullptr; ///< of the plan, if one was made
  const std::vector<std::string> *remedies = nullptr; ///< if nothing fits
  const std::vector<std::string> *why = nullptr;      ///< see explain.h
};

/// Of an outcome without errors. If nothing fits, plan is null and `nearest`
/// says what came closest.
std::string jsonOf(const PlanOutcome &outcome, const JsonStyle &style);

/// {"errors": [...]}
std::string errorsJson(const std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_JSON_H
