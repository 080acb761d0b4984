//===- exported_shardings.h - Layouts in other notations --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_EXPORTED_SHARDINGS_H
#define MTPLAN_TOOLS_REPORT_EXPORTED_SHARDINGS_H

#include "tools/driver/pipeline.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Writes a line for every stored parameter and every result of a forward
/// operator, as PartitionSpecs, Shardy attributes, DTensor placements or
/// Mesh-TensorFlow rules. Layers with the same layout share a line. A layout
/// that the notation cannot express is left out, with a note.
Exported exportShardings(const PlanOutcome &outcome, ExportKind kind);

/// Writes Hugging Face's base_model_tp_plan: how tp splits the weights in use.
Exported exportTpPlan(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_EXPORTED_SHARDINGS_H
