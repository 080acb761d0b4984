//===- report_json.h - The report as JSON -----------------------*- C++ -*-===//
//
// docs/json-output.md describes the keys. The same input gives the same bytes.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_REPORT_JSON_H
#define MTPLAN_TOOLS_REPORT_REPORT_JSON_H

#include <string>
#include <vector>

#include "passes/verify/prove.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

struct JsonStyle {
  bool timings = false;                 ///< fill search.time_s
  const passes::Proof *proof = nullptr; ///< proof of the plan, or null
  const std::vector<std::string> *remedies = nullptr; ///< given if no plan fits
  const std::vector<std::string> *why = nullptr;      ///< explanationsOf()
};

/// Writes an outcome without errors. If no plan fits, `plan` is null and
/// `nearest` is the nearest candidate.
std::string jsonOf(const PlanOutcome &outcome, const JsonStyle &style);

/// Writes {"errors": [...]}.
std::string errorsJson(const std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_REPORT_JSON_H
