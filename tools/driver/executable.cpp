//===- executable.cpp - From a plan to an executable plan -----------------===//

#include "tools/driver/executable.h"

#include <filesystem>

#include "mlir/Pass/PassManager.h"

#include "codegen/executable_plan.h"
#include "codegen/source/cuda_source.h"
#include "passes/pipelines.h"
#include "passes/schedule/stage_contents.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tools/driver/diagnostics.h"
#include "tools/driver/predicted_step.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

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

/// Writes the files of an emitted program. If a file exists and differs,
/// nothing is written, because the user may have edited it.
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
  // checkPlan verifies every compiled plan: a fault is a bug of the compiler.
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
