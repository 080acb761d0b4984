//===- exported_plan.cpp - A plan in other formats ------------------------===//

#include <fmt/format.h>

#include "planner/search/solve_candidate.h"
#include "planner/simulate/schedule.h"
#include "tools/driver/constraints.h"
#include "tools/driver/described_model.h"
#include "tools/exchange/chrome_trace.h"
#include "tools/exchange/deepspeed.h"
#include "tools/exchange/megatron.h"
#include "tools/exchange/torchtitan.h"
#include "tools/report/exported_shardings.h"
#include "tools/report/plan_facts.h"
#include "tools/report/report.h"
#include "tools/report/tensor_splits.h"

namespace mtplan::tools {

namespace {

// Adds a note about fp8 products, because the user must enable them in the
// trainer. Refuses tiles for all trainers except DeepSpeed, whose models can
// use tiles.
void judgeWeights(const PlanOutcome &outcome, ExportKind kind, Exported &out) {
  PlanFacts facts = factsOf(*outcome.problem, *outcome.best());
  const std::string tiled = tiledText(facts);
  if (!tiled.empty() && kind == ExportKind::deepspeed)
    out.note("weights are used in tiles, " + tiled +
             "; in DeepSpeed the model's code asks for them: TiledLinear "
             "(deepspeed/runtime/zero/tiling.py)");
  else if (!tiled.empty())
    out.refuse("weights are used in tiles, " + tiled + "; " + nameOf(kind) +
               " has none; nearest: --tiles 1");
  if (outcome.problem->options.precision == planner::Precision::fp8)
    out.note("the plan's products are in fp8; written as bf16: enable fp8 in "
             "the trainer");
}

TrainerConfig configOf(const PlanOutcome &outcome) {
  const Problem &problem = *outcome.problem;
  const planner::PlannedCandidate &best = *outcome.best();
  TrainerConfig config;
  config.parallelism = best.config;
  config.parallelism.sequenceParallel =
      best.config.tp > 1 && factsOf(problem, best).sequenceParallel;
  config.precision = problem.options.precision == planner::Precision::fp8
                         ? planner::Precision::bf16
                         : problem.options.precision;
  config.training.overlapGradReduce = problem.options.overlaps.reduce;
  config.training.overlapParamGather = problem.options.overlaps.gather;
  config.training.overlapPipeline = problem.options.overlaps.pointToPoint;
  describeModel(problem.model, best.config.tp, config);
  return config;
}

void refuseAll(const std::vector<std::string> &reasons, Exported &out) {
  for (const std::string &reason : reasons)
    out.refuse(reason);
}

Exported exportMegatron(const PlanOutcome &outcome,
                        const TrainerConfig &config) {
  const planner::Parallelism &p = config.parallelism;
  Exported out = writeMegatron(config);
  const std::vector<std::string> others = unlikeGpt(outcome.problem->model);
  refuseAll(others.empty() ? unlikeMegatronSplits(outcome, "Megatron-LM",
                                                  p.sequenceParallel)
                           : others,
            out);
  if (p.pp > 1 && p.virtualStages == 1 && config.training.overlapPipeline)
    out.note("Megatron-LM overlaps sends with compute only in interleaved "
             "schedules");
  if (out.refusals.empty())
    refuseOtherPlan(p, readMegatron(out.text, p.devices()), "Megatron-LM", out);
  return out;
}

Launch launchOf(const TrainerConfig &config) {
  Launch launch;
  launch.gpus = config.parallelism.devices();
  launch.layers = config.model.layers;
  launch.sequence = config.model.sequence;
  return launch;
}

// DeepSpeed takes experts and recomputation from the model's code.
Exported exportDeepSpeed(const PlanOutcome &outcome,
                         const TrainerConfig &config) {
  Exported out = writeDeepSpeed(config);
  refuseAll(unlikeMegatronSplits(outcome, "DeepSpeed", /*sequence=*/false),
            out);
  if (config.parallelism.pp > 1 && config.training.overlapPipeline)
    out.note("DeepSpeed's stages wait for their messages");
  if (!out.refusals.empty())
    return out;
  const TrainerConfig read = readDeepSpeed(out.text, launchOf(config));
  planner::Parallelism inFile = config.parallelism;
  inFile.ep = read.parallelism.ep;
  inFile.recompute = read.parallelism.recompute;
  inFile.recomputeLayers = read.parallelism.recomputeLayers;
  refuseOtherPlan(inFile, read, "DeepSpeed", out);
  return out;
}

Exported exportTorchtitan(const PlanOutcome &outcome,
                          const TrainerConfig &config) {
  Exported out = writeTorchtitan(config);
  refuseAll(unlikeMegatronSplits(outcome, "torchtitan", /*sequence=*/true),
            out);
  out.note(
      "the file is for torchtitan 0.2; set the model in its section [model]");
  if (out.refusals.empty())
    refuseOtherPlan(config.parallelism,
                    readTorchtitan(out.text, launchOf(config)), "torchtitan",
                    out);
  return out;
}

Exported exportToTrainer(const PlanOutcome &outcome, ExportKind kind) {
  const TrainerConfig config = configOf(outcome);
  Exported out;
  switch (kind) {
  case ExportKind::megatron:
    out = exportMegatron(outcome, config);
    break;
  case ExportKind::deepspeed:
    out = exportDeepSpeed(outcome, config);
    break;
  case ExportKind::torchtitan:
    out = exportTorchtitan(outcome, config);
    break;
  default:
    out = writeAccelerate(config);
    // The tensor ranks follow the tp_plan of the model in transformers.
    if (config.parallelism.tp > 1 && out.refusals.empty())
      refuseAll(exportTpPlan(outcome).refusals, out);
    break;
  }
  judgeWeights(outcome, kind, out);
  return out;
}

Exported written(const PlanOutcome &outcome, ExportKind kind) {
  switch (kind) {
  case ExportKind::megatron:
  case ExportKind::deepspeed:
  case ExportKind::torchtitan:
  case ExportKind::accelerate:
    return exportToTrainer(outcome, kind);
  case ExportKind::tpPlan:
    return exportTpPlan(outcome);
  case ExportKind::jax:
  case ExportKind::shardy:
  case ExportKind::dtensor:
  case ExportKind::meshTensorflow:
    return exportShardings(outcome, kind);
  case ExportKind::constraints:
    return {constraintsOf(outcome.asked, *outcome.problem, *outcome.best()),
            {},
            {}};
  }
  return {};
}

} // namespace

Exported exportPlan(const PlanOutcome &outcome, ExportKind kind) {
  Exported out = written(outcome, kind);
  if (!out.refusals.empty())
    out.text.clear();
  for (std::string &reason : out.refusals)
    reason = fmt::format("--export {}: {}", nameOf(kind), reason);
  return out;
}

std::string traceTextOf(const PlanOutcome &outcome,
                        std::vector<std::string> &errors) {
  const Problem &problem = *outcome.problem;
  const planner::PlannedCandidate &best = *outcome.best();
  planner::Setting setting =
      planner::settingOf(problem.options, problem.machine, best.config);
  planner::StepProblem step = planner::stepProblemOf(
      planner::withBatch(problem.graph,
                         best.config.microBatch * best.config.dp),
      best.parts, setting, best.config, problem.options.overlaps);
  return writeChromeTrace(
      traceOf(planner::simulateStep(step, planner::scheduleOf(step.shape))),
      errors);
}

} // namespace mtplan::tools
