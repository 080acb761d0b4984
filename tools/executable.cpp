//===- executable.cpp - A plan, compiled ----------------------------------===//

#include "tools/executable.h"

#include <filesystem>

#include "mlir/Pass/PassManager.h"

#include "codegen/executable_plan.h"
#include "codegen/source/cuda_source.h"
#include "passes/passes.h"
#include "passes/schedule/tasks.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "tools/diagnostics.h"
#include "tools/predicted_step.h"
#include "tools/text_file.h"

namespace mtplan::tools {

std::optional<runtime::Plan>
executableOf(const Problem &problem, const planner::PlannedCandidate &candidate,
             std::vector<std::string> &errors) {
  const planner::Parallelism &how = candidate.how;
  if (how.tiles > 1) {
    errors.emplace_back("-o: weights in tiles are planned and priced, but not "
                        "compiled yet; plan with --tiles 1");
    return std::nullopt;
  }
  mlir::OwningOpRef<mlir::ModuleOp> module =
      moduleOf(problem, Stage::partitioned, &candidate, errors);
  if (!module)
    return std::nullopt;
  CapturedDiagnostics captured(*problem.context, errors);
  passes::writeTasks(*module, how.schedule,
                     static_cast<int>(how.microBatches()));
  passes::PlaceMemoryPassOptions places;
  places.gradientBytes = static_cast<int>(
      planner::stateBytesOf(
          planner::settingOf(problem.options, problem.machine, how))
          .gradient);
  places.sumsPerUse = problem.options.sumsPerUse;
  places.scattersEarly = problem.options.scattersEarly;
  places.offloads = how.offload == planner::Offload::optimizer;
  mlir::PassManager manager(problem.context.get());
  manager.addPass(passes::createPlaceMemoryPass(places));
  if (mlir::failed(manager.run(*module)))
    return std::nullopt;
  mlir::FailureOr<runtime::Plan> plan = codegen::executablePlanOf(
      *module, problem.model.name, problem.options.overlaps.reduce);
  if (mlir::failed(plan))
    return std::nullopt;
  return std::move(*plan);
}

/// Somebody may have changed what was written: that stays.
static bool writeSource(const std::filesystem::path &path,
                        const std::string &text,
                        std::vector<std::string> &errors) {
  if (!std::filesystem::exists(path))
    return writeTextFile(path.string(), text, errors);
  std::vector<std::string> unread;
  const std::optional<std::string> there = readTextFile(path.string(), unread);
  if (there && *there == text)
    return true;
  errors.push_back("--emit: " + path.string() +
                   " is there and differs from what would be written: remove "
                   "it, or give -o another folder");
  return false;
}

bool writeExecutable(const Problem &problem,
                     const planner::PlannedCandidate &candidate,
                     const std::string &folder, bool withSource,
                     std::vector<std::string> &errors) {
  std::optional<runtime::Plan> plan = executableOf(problem, candidate, errors);
  if (!plan)
    return false;
  // The gate of all that compiles: what it finds is a fault of ours.
  for (const std::string &fault : runtime::checkPlan(*plan))
    errors.push_back("-o: the compiled plan is wrong, and was not written: " +
                     fault);
  if (!errors.empty())
    return false;
  std::string source, project;
  if (withSource)
    try {
      source = codegen::cudaSource(*plan);
      project = codegen::cudaProject(*plan);
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
  if (withSource && (!writeSource(place / "train.cu", source, errors) ||
                     !writeSource(place / "CMakeLists.txt", project, errors)))
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
