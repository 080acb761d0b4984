//===- compare.h - Two saved plans side by side -----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_COMPARE_H
#define MTPLAN_TOOLS_REPORT_COMPARE_H

#include <string>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// An outcome with a best plan, and its name.
struct ComparedPlan {
  std::string name; ///< file name
  const PlanOutcome *outcome = nullptr;
};

/// Compares configurations, times, memory, traffic by axis and the splits of
/// operators. The last line says which plan is faster, and why.
std::string comparisonOf(const ComparedPlan &one, const ComparedPlan &other);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_COMPARE_H
