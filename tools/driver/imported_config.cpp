//===- imported_config.cpp - Another trainer's configuration --------------===//

#include "tools/driver/imported_config.h"

#include "tools/exchange/deepspeed.h"
#include "tools/exchange/megatron.h"
#include "tools/exchange/torchtitan.h"

namespace mtplan::tools {

using planner::Parallelism;
using planner::SearchOptions;
using planner::Split;

namespace {

TrainerConfig readAny(const std::string &text, const ir::LoadedModel &model,
                      const SearchOptions &options, bool &isMegatron) {
  Launch launch;
  launch.gpus = options.devices;
  launch.stages = options.pp.only.size() == 1 ? options.pp.only[0] : 1;
  launch.layers = model.layers;
  launch.sequence = model.sequence;
  launch.globalBatch = options.globalBatch;
  launch.microBatch = options.microBatch.value_or(0);
  std::size_t start = text.find_first_not_of(" \t\r\n");
  isMegatron = false;
  if (start != text.npos && text[start] == '{')
    return readDeepSpeed(text, launch);
  if (text.find("[parallelism]") != text.npos ||
      text.find("[training]") != text.npos)
    return readTorchtitan(text, launch);
  isMegatron = true;
  return readMegatron(text, options.devices);
}

void compareShapes(const ModelFacts &said, const ir::LoadedModel &model,
                   std::vector<std::string> &errors) {
  auto compare = [&](const char *what, std::int64_t here,
                     std::optional<std::int64_t> there) {
    if (here > 0 && there && here != *there)
      errors.push_back(std::string(what) + " is " + std::to_string(here) +
                       ", the model's " + std::to_string(*there));
  };
  compare("number of layers", said.layers, model.layers);
  compare("hidden size", said.hidden, model.hidden);
  compare("number of heads", said.heads, model.heads);
  compare("number of key/value heads", said.kvHeads, model.kvHeads);
  compare("sequence", said.sequence, model.sequence);
}

} // namespace

void applyTrainerConfig(const std::string &file, const std::string &text,
                        const ir::LoadedModel &model, SearchOptions &options,
                        std::vector<std::string> &notes,
                        std::vector<std::string> &errors) {
  bool isMegatron = false;
  TrainerConfig config = readAny(text, model, options, isMegatron);
  std::vector<std::string> found = config.errors;
  if (found.empty())
    compareShapes(config.model, model, found);
  const std::string where = file + ": ";
  for (const std::string &error : found)
    errors.push_back(where + error);
  for (const std::string &warning : config.warnings)
    notes.push_back(where + warning);
  if (!found.empty())
    return;
  const Parallelism &parallelism = config.parallelism;
  if (isMegatron && model.vocabulary && model.paddedVocabulary) {
    std::int64_t rows = megatronVocabulary(
        *model.vocabulary, config.model.vocabMultiple, parallelism.tp);
    if (rows != *model.paddedVocabulary)
      notes.push_back(where + "at tp " + std::to_string(parallelism.tp) +
                      " Megatron-LM stores the vocabulary as " +
                      std::to_string(rows) + ", the model here as " +
                      std::to_string(*model.paddedVocabulary) +
                      "; padded_vocab_size in the model file changes that");
  }
  options.dp = parallelism.dp;
  options.tp = parallelism.tp;
  options.pp.only = {parallelism.pp};
  options.cp.only = {parallelism.cp};
  options.ep.only = {parallelism.ep};
  options.virtualStages.only = {parallelism.virtualStages};
  options.schedule.only = {parallelism.schedule};
  // An imported configuration with offloading may have ZeRO 1 for a single
  // replica. The search enumerates this case as ZeRO 0.
  bool isNamedOnly = parallelism.offload != planner::Offload::none &&
                     parallelism.zeroStage == 1 &&
                     parallelism.dp * parallelism.cp == 1;
  options.zeroStage.only = {isNamedOnly ? 0 : parallelism.zeroStage};
  if (parallelism.zeroStage > 0)
    options.zeroRanks.only = {parallelism.zeroRanks};
  options.recompute.only = {parallelism.recompute};
  if (parallelism.recompute == planner::Recompute::full)
    options.recomputeLayers.only = {parallelism.recomputeLayers};
  options.offload.only = {parallelism.offload};
  options.tiles.only = {1};
  options.microBatch = parallelism.microBatch;
  options.globalBatch = parallelism.globalBatch;
  options.layers = parallelism.layers;
  options.unevenCuts = false;
  options.overlaps.gather = config.training.overlapParamGather;
  options.overlaps.reduce = config.training.overlapGradReduce;
  // Megatron-LM overlaps sends with compute only in interleaved schedules.
  options.overlaps.pointToPoint =
      config.training.overlapPipeline &&
      (!isMegatron ||
       parallelism.schedule == planner::ScheduleKind::interleaved);
  if (isMegatron) {
    options.tensorSplits = {Split::column, Split::row, Split::head,
                            Split::vocab};
    if (parallelism.sequenceParallel)
      options.tensorSplits.push_back(Split::sequence);
  }
}

} // namespace mtplan::tools
