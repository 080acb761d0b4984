//===- exported_plan.h - A plan in the formats of other programs *- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_EXPORTED_PLAN_H
#define MTPLAN_TOOLS_REPORT_EXPORTED_PLAN_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Writes the best plan in the notation of another trainer.
Exported exportPlan(const PlanOutcome &outcome, ExportKind kind);

/// Simulates the best plan's step in full and writes it as trace event JSON,
/// for Perfetto.
std::string traceTextOf(const PlanOutcome &outcome,
                        std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_EXPORTED_PLAN_H
