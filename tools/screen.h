//===- screen.h - One screen for a person -----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_SCREEN_H
#define MTPLAN_TOOLS_SCREEN_H

#include <string>

#include "tools/facts.h"

namespace mtplan::tools {

struct ScreenStyle {
  bool colour = false;  ///< only on a terminal
  bool timings = false; ///< how long the search took: differs from run to run
};

/// The best plan of an outcome that has one, and what it was chosen from.
std::string screenOf(const PlanOutcome &outcome, const ScreenStyle &style);

/// "gpt2-8.3b  8.30 B parameters, 72 layers, ..." and the machine: two lines.
std::string headingOf(const Problem &problem, const ScreenStyle &style);

/// Lines of memory by class, against the limit.
std::string memoryText(const planner::MemoryUse &memory);

/// What the device's margin is made of, if the machine file tells: a line, or
/// nothing.
std::string marginsText(const planner::Device &device);

/// A line per mesh that has no plan in the list, those that came nearest; how
/// many more there are.
std::string rejectedText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_SCREEN_H
