//===- described_model.h - A model in the words of trainers -----*- C++ -*-===//
//
// Trainers describe a model by its sizes and by a few choices, which are found
// in the operators of the model's forward module.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_DRIVER_DESCRIBED_MODEL_H
#define MTPLAN_TOOLS_DRIVER_DESCRIBED_MODEL_H

#include <cstdint>
#include <string>
#include <vector>

#include "ir/model/load.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Sets TrainerConfig::model and the dropout rates.
/// \param tensorRanks  of the plan; trainers pad the vocabulary for them
void describeModel(const ir::LoadedModel &model, std::int64_t tensorRanks,
                   TrainerConfig &config);

/// Returns the reasons why the model is no GPT of Megatron-LM, which is a
/// decoder of equal layers with norms before each branch.
std::vector<std::string> unlikeGpt(const ir::LoadedModel &model);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_DESCRIBED_MODEL_H
