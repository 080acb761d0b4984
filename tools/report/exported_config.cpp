//===- exported_config.cpp - A plan for another trainer -------------------===//

#include "tools/report/exported_config.h"

#include <algorithm>

#include "tools/driver/constraints.h"
#include "tools/exchange/accelerate.h"
#include "tools/exchange/deepspeed.h"
#include "tools/exchange/megatron.h"
#include "tools/exchange/torchtitan.h"
#include "tools/report/exported_shardings.h"
#include "tools/report/plan_facts.h"

namespace mtplan::tools {

namespace {

// Adds a note on tiles, which no trainer's configuration has.
Exported withTiles(Exported out, const PlanOutcome &outcome,
                   const char *where) {
  PlanFacts facts = factsOf(*outcome.problem, *outcome.best());
  if (std::string tiled = tiledText(facts); !tiled.empty())
    out.notes.push_back("weights are used in tiles, " + tiled + "; " + where);
  return out;
}

} // namespace

Exported exportPlan(const PlanOutcome &outcome, ExportKind kind) {
  const Problem &problem = *outcome.problem;
  const ir::LoadedModel &model = problem.model;
  const planner::PlannedCandidate &best = *outcome.best();
  TrainerConfig config;
  config.parallelism = best.config;
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
