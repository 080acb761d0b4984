//===- compare.h - Two saved plans side by side -----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_COMPARE_H
#define MTPLAN_TOOLS_COMPARE_H

#include <string>

#include "tools/pipeline.h"

namespace mtplan::tools {

/// An outcome with a best plan, and what it is called.
struct ComparedPlan {
  std::string name; ///< of its file
  const PlanOutcome *outcome = nullptr;
};

/// What differs, where time and memory go, what is sent over which axis, which
/// operators are split otherwise, and one line on which is faster and why.
std::string comparisonOf(const ComparedPlan &one, const ComparedPlan &other);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_COMPARE_H
