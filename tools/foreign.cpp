//===- foreign.cpp - Other trainers' configurations, in and out -----------===//

#include "tools/foreign.h"

#include <algorithm>

#include "tools/constraints.h"
#include "tools/exchange/accelerate.h"
#include "tools/exchange/deepspeed.h"
#include "tools/exchange/megatron.h"
#include "tools/exchange/torchtitan.h"
#include "tools/facts.h"
#include "tools/shardings.h"

namespace mtplan::tools {

using planner::Parallelism;
using planner::SearchOptions;
using planner::Split;

namespace {

ForeignConfig readAny(const std::string &text, const ir::LoadedModel &model,
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

// Where the text names a size of the model, it is the model's.
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

// Tiles are in nobody's configuration.
Exported withTiles(Exported out, const PlanOutcome &outcome,
                   const char *where) {
  PlanFacts facts = factsOf(*outcome.problem, *outcome.best());
  if (std::string tiled = tiledText(facts); !tiled.empty())
    out.notes.push_back("weights are used in tiles, " + tiled + "; " + where);
  return out;
}

} // namespace

void applyForeign(const std::string &file, const std::string &text,
                  const ir::LoadedModel &model, SearchOptions &options,
                  std::vector<std::string> &notes,
                  std::vector<std::string> &errors) {
  bool isMegatron = false;
  ForeignConfig config = readAny(text, model, options, isMegatron);
  std::vector<std::string> found = config.errors;
  if (found.empty()) {
    compareShapes(config.model, model, found);
  }
  const std::string where = file + ": ";
  for (const std::string &error : found)
    errors.push_back(where + error);
  for (const std::string &warning : config.warnings)
    notes.push_back(where + warning);
  if (!found.empty())
    return;
  const Parallelism &how = config.parallelism;
  if (isMegatron && model.vocabulary && model.paddedVocabulary) {
    std::int64_t rows = megatronVocabulary(*model.vocabulary,
                                           config.model.vocabMultiple, how.tp);
    if (rows != *model.paddedVocabulary)
      notes.push_back(file + ": at tp " + std::to_string(how.tp) +
                      " Megatron-LM stores the vocabulary as " +
                      std::to_string(rows) + ", the model here as " +
                      std::to_string(*model.paddedVocabulary) +
                      "; padded_vocab_size in the model file changes that");
  }
  options.dp = how.dp;
  options.tp = how.tp;
  options.pp.only = {how.pp};
  options.cp.only = {how.cp};
  options.ep.only = {how.ep};
  options.virtualStages.only = {how.virtualStages};
  options.schedule.only = {how.schedule};
  // Who offloads asks for stage 1 by name even where there is one replica.
  bool isNamedOnly = how.offload != planner::Offload::none &&
                     how.zeroStage == 1 && how.dp * how.cp == 1;
  options.zeroStage.only = {isNamedOnly ? 0 : how.zeroStage};
  if (how.zeroStage > 0)
    options.zeroRanks.only = {how.zeroRanks};
  options.recompute.only = {how.recompute};
  if (how.recompute == planner::Recompute::full)
    options.recomputeLayers.only = {how.recomputeLayers};
  options.offload.only = {how.offload};
  options.tiles.only = {1};
  options.microBatch = how.microBatch;
  options.globalBatch = how.globalBatch;
  options.layers = how.layers;
  options.overlaps.gather = config.training.overlapParamGather;
  options.overlaps.reduce = config.training.overlapGradReduce;
  // Megatron-LM sends beside compute only where it interleaves.
  options.overlaps.pointToPoint =
      config.training.overlapPipeline &&
      (!isMegatron || how.schedule == planner::ScheduleKind::interleaved);
  if (isMegatron) {
    options.tensorSplits = {Split::column, Split::row, Split::head,
                            Split::vocab};
    if (how.sequenceParallel)
      options.tensorSplits.push_back(Split::sequence);
  }
}

Exported exportPlan(const PlanOutcome &outcome, ExportKind kind) {
  const Problem &problem = *outcome.problem;
  const ir::LoadedModel &model = problem.model;
  const planner::PlannedCandidate &best = *outcome.best();
  ForeignConfig config;
  config.parallelism = best.how;
  config.parallelism.sequenceParallel = factsOf(problem, best).sequenceParallel;
  config.precision = problem.options.precision;
  config.training.overlapGradReduce = problem.options.overlaps.reduce;
  config.training.overlapParamGather = problem.options.overlaps.gather;
  config.training.overlapPipeline = problem.options.overlaps.pointToPoint;
  ModelFacts &facts = config.model;
  facts.layers = model.layers;
  facts.hidden = model.hidden.value_or(0);
  facts.heads = model.heads.value_or(0);
  facts.kvHeads = model.kvHeads.value_or(facts.heads);
  facts.ffn = model.inner.value_or(0);
  facts.vocab = model.vocabulary.value_or(0);
  facts.sequence = model.sequence;
  facts.tied = std::ranges::any_of(
      problem.graph.parameters, [](const planner::Parameter &parameter) {
        return parameter.shared && parameter.name == "wte.weight";
      });
  if (model.family == "llama" || model.family == "mistral" ||
      model.family == "qwen2") {
    facts.swiglu = true;
    facts.linearBias = false;
    facts.norm = NormKind::rmsNorm;
    facts.position = PositionKind::rope;
  } else if (model.family == "gptj" || model.family == "gpt_neox") {
    facts.position = PositionKind::rope;
  }
  switch (kind) {
  case ExportKind::megatron:
    return withTiles(writeMegatron(config), outcome, "Megatron-LM has none");
  case ExportKind::deepspeed:
    return withTiles(writeDeepSpeed(config), outcome,
                     "in DeepSpeed the model's code asks for them: TiledLinear "
                     "(deepspeed/runtime/zero/tiling.py)");
  case ExportKind::torchtitan:
    return withTiles(writeTorchtitan(config), outcome, "torchtitan has none");
  case ExportKind::accelerate:
    return withTiles(writeAccelerate(config), outcome, "FSDP2 has none");
  case ExportKind::tpPlan:
    return exportTpPlan(outcome);
  case ExportKind::jax:
  case ExportKind::shardy:
  case ExportKind::dtensor:
  case ExportKind::meshTensorflow:
    return exportShardings(outcome, kind);
  case ExportKind::constraints:
    return {constraintsOf(outcome.asked, problem, best), {}};
  }
  return {};
}

} // namespace mtplan::tools
