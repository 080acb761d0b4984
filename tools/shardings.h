//===- shardings.h - The layouts of a plan in others' words -----*- C++ -*-===//

#ifndef MTPLAN_TOOLS_SHARDINGS_H
#define MTPLAN_TOOLS_SHARDINGS_H

#include "tools/exchange/foreign_config.h"
#include "tools/pipeline.h"

namespace mtplan::tools {

/// Every parameter as it is stored and every forward operator's result as it is
/// made, a line each, as PartitionSpecs, Shardy attributes, DTensor placements
/// or Mesh-TensorFlow rules. Copies that lie alike share a line. What a
/// notation cannot say is left out, with a note.
Exported exportShardings(const PlanOutcome &outcome, ExportKind kind);

/// Hugging Face's base_model_tp_plan of the plan: how tp splits the weights as
/// they are used.
Exported exportTpPlan(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_SHARDINGS_H
