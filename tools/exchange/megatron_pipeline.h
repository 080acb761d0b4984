//===- megatron_pipeline.h - Layers of Megatron-LM's stages -----*- C++ -*-===//
//
// A layout is Megatron-LM's notation of an uneven pipeline,
// "Et*3|(tt|)*29,m|L": E embedding, t layer, m layer that predicts further
// tokens, L loss, | border between two virtual stages, *n repetition of the
// preceding letter or bracket. Commas and blanks are ignored.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_EXCHANGE_MEGATRON_PIPELINE_H
#define MTPLAN_TOOLS_EXCHANGE_MEGATRON_PIPELINE_H

#include <string>
#include <vector>

#include "tools/exchange/megatron_flags.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Reads the options of the stages and of their schedule.
void readMegatronPipeline(const MegatronFlags &flags, TrainerConfig &config);

/// Writes the layout of stages with these numbers of layers: {3, 2, 2, 1}
/// becomes "Et*3|t*2|t*2|tL".
std::string writePipelineLayout(const std::vector<int> &layers);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_MEGATRON_PIPELINE_H
