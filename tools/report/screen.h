//===- screen.h - The report on the screen ----------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_SCREEN_H
#define MTPLAN_TOOLS_REPORT_SCREEN_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

struct ScreenStyle {
  bool colour = false; ///< set only on a terminal
  /// Print the search time, which differs from run to run.
  bool timings = false;
};

/// Returns the best plan of an outcome that has one, and the alternatives.
std::string screenOf(const PlanOutcome &outcome, const ScreenStyle &style);

/// Returns two lines: "gpt2-8.3b  8.30 B parameters, 72 layers, ..." and the
/// machine.
std::string headingOf(const Problem &problem, const ScreenStyle &style);

/// Returns the screen of an outcome without a plan: the nearest candidate, the
/// reasons of other meshes, and the remedies.
std::string infeasibleText(const PlanOutcome &outcome,
                           const std::vector<std::string> &remedies,
                           const ScreenStyle &style);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_SCREEN_H
