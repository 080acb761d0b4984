//===- objective_text.h - The result of an objective ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_OBJECTIVE_TEXT_H
#define MTPLAN_TOOLS_REPORT_OBJECTIVE_TEXT_H

#include <string>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Returns "GPUs  32 are the fewest ..." and a line per attempt; empty for the
/// step time.
std::string objectiveText(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_OBJECTIVE_TEXT_H
