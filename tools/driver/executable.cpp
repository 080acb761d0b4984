//===- executable.cpp - From a plan to an executable plan -----------------===//

#include "tools/driver/executable.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "mlir/Pass/PassManager.h"

#include "codegen/executable_plan.h"
#include "codegen/source/cuda_source.h"
#include "passes/pipelines.h"
#include "passes/schedule/stage_contents.h"
#include "planner/integers.h"
#include "planner/search/price/phase_times.h"
#include "planner/search/price/workspace.h"
#include "planner/search/solve_candidate.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "runtime/plan/plan_queries.h"
#include "tools/driver/pipeline.h"
#include "tools/exchange/chrome_trace.h"
#include "tools/exchange/prediction.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

using planner::at;

namespace {

using Classes = std::map<std::string, double>; ///< seconds by class

// Returns, by class, the time per step of the instructions of a stage, without
// messages and waits.
Classes classesOfStage(const planner::ModelGraph &graph,
                       const planner::PlannedCandidate &plan,
                       const planner::Setting &setting, int stage) {
  planner::Setting here = setting;
  here.recomputeShare = planner::recomputeShareOf(plan.config, stage);
  const auto batches = static_cast<double>(here.microBatches);
  Classes classes;
  std::vector<bool> paid(graph.parameters.size(), false);
  std::vector<planner::SegmentPlan> runs;
  for (std::size_t part = at(stage); part < plan.parts.size();
       part += at(plan.config.pp))
    for (const planner::SegmentPlan &run : plan.parts[part]) {
      for (const auto &[kind, time] : planner::kindTimesOf(graph, run, here))
        classes[std::string(runtime::classOfKernel(kind))] +=
            time.value * run.count * batches;
      const planner::PhaseTimes times =
          planner::phaseTimesOf(graph, run, here, paid);
      classes[runtime::kCopies] +=
          (times.forward.local + times.backward.local).value * run.count *
              batches +
          (times.host.down + times.host.up).value * run.count;
      classes[runtime::kGradientNorm] += times.squares.value * run.count;
      classes[runtime::kOptimizer] +=
          (times.update - times.squares + times.host.update).value * run.count;
      runs.push_back(run);
    }
  for (const planner::LedgerEntry &entry : planner::ledgerOf(graph, runs, here))
    classes[runtime::classOfGroup(here.mesh.axes[at(entry.axis)].name)] +=
        entry.time.value * static_cast<double>(entry.perStep);
  return classes;
}

Prediction predictionOf(const Problem &problem,
                        const planner::PlannedCandidate &candidate) {
  const planner::Parallelism &config = candidate.config;
  const planner::ModelGraph graph =
      planner::withBatch(problem.graph, config.microBatch * config.dp);
  const planner::Setting setting =
      planner::settingOf(problem.options, problem.machine, config);
  const planner::StepProblem step = planner::stepProblemOf(
      graph, candidate.parts, setting, config, problem.options.overlaps);
  const planner::StepResult result =
      planner::simulateStep(step, planner::scheduleOf(step.shape));

  Prediction prediction;
  prediction.step = result.step.value;
  Classes sums;
  for (int stage = 0; stage < config.pp; ++stage)
    for (const auto &[name, seconds] :
         classesOfStage(graph, candidate, setting, stage))
      sums[name] += seconds / config.pp;
  if (step.clipsGradients)
    sums[runtime::kGradientNorm] += step.gradientNorm.value;
  if (config.pp > 1)
    sums[runtime::classOfGroup("pp")] += step.tied.value * 2.0 / config.pp;
  double rest = prediction.step;
  for (const auto &[name, seconds] : sums)
    rest -= seconds;
  if (config.pp > 1)
    sums[runtime::kMessages] = std::max(0.0, rest);
  prediction.classes.assign(sums.begin(), sums.end());

  const Trace trace = traceOf(result);
  for (const TraceLabel &label : trace.labels)
    if (label.thread != TraceLabel::kWholeProcess)
      prediction.streams.push_back({label.process, label.thread, label.name});
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent &event = trace.events[i];
    prediction.tasks.push_back(
        {event.process, event.thread, event.start, event.duration,
         event.category, result.tasks[i].microBatch, result.tasks[i].segment});
  }
  return prediction;
}

} // namespace

std::optional<runtime::Plan>
executableOf(const Problem &problem, const planner::PlannedCandidate &candidate,
             std::vector<std::string> &errors) {
  const planner::Parallelism &config = candidate.config;
  if (config.tiles > 1) {
    errors.emplace_back("-o: weights in tiles are planned and priced, but not "
                        "compiled yet; plan with --tiles 1");
    return std::nullopt;
  }
  mlir::OwningOpRef<mlir::ModuleOp> module =
      moduleOf(problem, Stage::partitioned, &candidate, errors);
  if (!module)
    return std::nullopt;
  CapturedDiagnostics captured(*problem.context, errors);
  passes::writeTasks(*module, config.schedule,
                     static_cast<int>(config.microBatches()));
  passes::PlacementOptions placement;
  placement.gradientBytes = static_cast<int>(
      planner::stateBytesOf(
          planner::settingOf(problem.options, problem.machine, config))
          .gradient);
  placement.sumsPerUse = problem.options.sumsPerUse;
  placement.overlapsReductions = problem.options.overlaps.reduce;
  placement.gathersAhead = planner::gathersAhead(
      planner::settingOf(problem.options, problem.machine, config));
  placement.offloads = config.offload == planner::Offload::optimizer;
  mlir::PassManager manager(problem.context.get());
  passes::buildPlacement(manager, placement);
  if (mlir::failed(manager.run(*module)))
    return std::nullopt;
  mlir::FailureOr<runtime::Plan> plan =
      codegen::executablePlanOf(*module, problem.model.name);
  if (mlir::failed(plan))
    return std::nullopt;
  return std::move(*plan);
}

/// Writes the program's files. If one of the files exists and differs, writes
/// nothing, because the user may have edited the file.
static bool writeProgram(const std::filesystem::path &folder,
                         const std::vector<codegen::ProgramFile> &files,
                         std::vector<std::string> &errors) {
  for (const codegen::ProgramFile &file : files) {
    const std::filesystem::path path = folder / file.path;
    if (!std::filesystem::exists(path))
      continue;
    std::vector<std::string> unread;
    const std::optional<std::string> there =
        readTextFile(path.string(), unread);
    if (!there || *there != file.text) {
      errors.push_back("--emit: " + path.string() +
                       " is there and differs from what would be written: "
                       "remove it, or give -o another folder");
      return false;
    }
  }
  for (const codegen::ProgramFile &file : files) {
    const std::filesystem::path path = folder / file.path;
    std::error_code code;
    std::filesystem::create_directories(path.parent_path(), code);
    if (code) {
      errors.push_back("--emit: " + path.parent_path().string() + ": " +
                       code.message());
      return false;
    }
    if (!writeTextFile(path.string(), file.text, errors))
      return false;
  }
  return true;
}

bool writeExecutable(const Problem &problem,
                     const planner::PlannedCandidate &candidate,
                     const std::string &folder, bool withSource,
                     std::vector<std::string> &errors) {
  std::optional<runtime::Plan> plan = executableOf(problem, candidate, errors);
  if (!plan)
    return false;
  // checkPlan verifies every compiled plan. A fault here is a bug in the
  // compiler.
  for (const std::string &fault : runtime::checkPlan(*plan))
    errors.push_back("-o: the compiled plan is wrong, and was not written: " +
                     fault);
  if (!errors.empty())
    return false;
  std::vector<codegen::ProgramFile> program;
  if (withSource)
    try {
      program = codegen::cudaProgram(*plan);
    } catch (const codegen::SourceError &error) {
      errors.push_back(std::string("--emit: ") + error.what());
      return false;
    }
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    errors.push_back("-o: " + folder + ": " + code.message());
    return false;
  }
  const std::filesystem::path place(folder);
  if (!writeProgram(place, program, errors))
    return false;
  try {
    runtime::writePlanFile(place / "plan.json", *plan);
  } catch (const runtime::PlanError &error) {
    errors.emplace_back(error.what());
    return false;
  }
  return writeTextFile(place / kPredictionFile,
                       textOf(predictionOf(problem, candidate)), errors);
}

} // namespace mtplan::tools
