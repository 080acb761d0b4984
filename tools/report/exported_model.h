//===- exported_model.h - A model in the words of trainers ------*- C++ -*-===//
//
// Trainers describe a model by its sizes and by a few choices, which are found
// in the operators of the model's forward module.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_EXPORTED_MODEL_H
#define MTPLAN_TOOLS_REPORT_EXPORTED_MODEL_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"
#include "tools/exchange/trainer_config.h"

namespace mtplan::tools {

/// Sets the facts of the model and the dropout rates.
/// \param tensorRanks  of the plan; trainers pad the vocabulary for them
void describeModel(const ir::LoadedModel &model, std::int64_t tensorRanks,
                   TrainerConfig &config);

/// Returns the reasons why the model is no GPT of Megatron-LM, which is a
/// decoder of equal layers with norms before each branch.
std::vector<std::string> unlikeGpt(const ir::LoadedModel &model);

/// Returns why `trainer` cannot run a configuration with two tensor axes.
std::string twoAxesText(const std::string &trainer,
                        const planner::Parallelism &config);

/// Returns the reasons why the best plan's tensor ranks work otherwise than
/// those of `trainer`, which are Megatron-LM's: q, k, v and the first products
/// of an MLP are split by columns, the last products by rows, and attention by
/// heads.
/// \param sequence  the trainer splits the sequence of norms and sums
std::vector<std::string> unlikeMegatronSplits(const PlanOutcome &outcome,
                                              const std::string &trainer,
                                              bool sequence);

/// Returns "h.0..31.attn.q" for layers 0 to 31 of "h.*.attn.q".
std::string nameOfLayers(const std::string &label, int first, int count);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_EXPORTED_MODEL_H
