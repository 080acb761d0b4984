//===- described_model.h - A model as trainers describe it ------*- C++ -*-===//
//
// Trainers describe a model by its sizes and by a few choices, such as the kind
// of norm. These functions find both in the operators of the model's forward
// module.
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
/// \param tensorRanks  degree tp of the plan; trainers pad the vocabulary to a
///   multiple of tp
void describeModel(const ir::LoadedModel &model, std::int64_t tensorRanks,
                   TrainerConfig &config);

/// Returns the reasons why Megatron-LM's GPT does not cover the model. A GPT of
/// Megatron-LM is a decoder of equal layers with a norm before each branch.
std::vector<std::string> unlikeGpt(const ir::LoadedModel &model);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_DRIVER_DESCRIBED_MODEL_H
