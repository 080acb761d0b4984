//===- stage_layers.h - The layers of a run's stages ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUNS_STAGE_LAYERS_H
#define MTPLAN_TOOLS_RUNS_STAGE_LAYERS_H

#include <vector>

#include "tools/runs/run_row.h"

namespace mtplan::tools {

/// Returns the layers of each virtual stage of a published run, in model order.
/// Without interleaving, nanotron cuts a model by the weights of its blocks,
/// and may leave the last stages without layers: the head is then alone on one
/// of these stages, and the others are left out of the result. All other
/// software cuts evenly. \param layers  the layers of the model
std::vector<int> stageLayersOf(const RunRow &row, int layers);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUNS_STAGE_LAYERS_H
