//===- exported_shardings.h - Layouts in other notations --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_EXPORTED_SHARDINGS_H
#define MTPLAN_TOOLS_REPORT_EXPORTED_SHARDINGS_H

#include "tools/driver/pipeline.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Writes the layouts of the best plan's stored parameters and of the results
/// of its forward operators.
/// \param kind  jax, shardy, dtensor or meshTensorflow
Exported exportShardings(const PlanOutcome &outcome, ExportKind kind);

/// Writes a DistributedConfig of transformers for the best plan's tensor ranks.
Exported exportTpPlan(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_EXPORTED_SHARDINGS_H
