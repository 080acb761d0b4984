//===- exported_config.h - A plan for another trainer -----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_EXPORTED_CONFIG_H
#define MTPLAN_TOOLS_REPORT_EXPORTED_CONFIG_H

#include "tools/driver/pipeline.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Writes the best plan in the notation of another trainer.
Exported exportPlan(const PlanOutcome &outcome, ExportKind kind);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_EXPORTED_CONFIG_H
