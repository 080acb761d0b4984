//===- screen.h - The report on the screen ----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_SCREEN_H
#define MTPLAN_TOOLS_REPORT_SCREEN_H

#include <string>

#include "tools/report/plan_facts.h"

namespace mtplan::tools {

struct ScreenStyle {
  bool colour = false; ///< only on a terminal
  bool timings =
      false; ///< print the search time, which differs from run to run
};

/// Returns the best plan of an outcome that has one, and the alternatives.
std::string screenOf(const PlanOutcome &outcome, const ScreenStyle &style);

/// Returns two lines: "gpt2-8.3b  8.30 B parameters, 72 layers, ..." and the
/// machine.
std::string headingOf(const Problem &problem, const ScreenStyle &style);

/// Returns lines with the memory of each class, and the limit.
std::string memoryText(const planner::MemoryUse &memory);

/// Returns a line with the parts of the device's reserved memory, if the
/// machine file has them; else nothing.
std::string marginsText(const planner::Device &device);

/// Returns a line per mesh without a plan, nearest first, and the number of
/// meshes that are not shown.
std::string rejectedText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_SCREEN_H
