//===- infeasible.h - The report when nothing fits --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_INFEASIBLE_H
#define MTPLAN_TOOLS_REPORT_INFEASIBLE_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"
#include "tools/report/screen.h"

namespace mtplan::tools {

/// Returns the screen of an outcome without a plan: the nearest candidate, the
/// reasons of other meshes, and the remedies.
std::string infeasibleText(const PlanOutcome &outcome,
                           const std::vector<std::string> &remedies,
                           const ScreenStyle &style);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_INFEASIBLE_H
