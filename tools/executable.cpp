//===- executable.cpp - A plan, compiled ----------------------------------===//

#include "tools/executable.h"

#include <filesystem>

#include "mlir/Pass/PassManager.h"

#include "codegen/executable_plan.h"
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
  if (how.tiles > 1 || how.offload != planner::Offload::none) {
    errors.emplace_back(
        "-o: weights in tiles and an offloaded optimizer are planned and "
        "priced, but not compiled yet; plan with --tiles 1 --offload none");
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
  mlir::PassManager manager(problem.context.get());
  manager.addPass(passes::createPlaceMemoryPass(places));
  if (mlir::failed(manager.run(*module)))
    return std::nullopt;
  mlir::FailureOr<runtime::Plan> plan =
      codegen::executablePlanOf(*module, problem.model.name);
  if (mlir::failed(plan))
    return std::nullopt;
  return std::move(*plan);
}

bool writeExecutable(const Problem &problem,
                     const planner::PlannedCandidate &candidate,
                     const std::string &folder,
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
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    errors.push_back("-o: " + folder + ": " + code.message());
    return false;
  }
  try {
    runtime::writePlanFile(std::filesystem::path(folder) / "plan.json", *plan);
  } catch (const runtime::PlanError &error) {
    errors.emplace_back(error.what());
    return false;
  }
  return writeTextFile(std::filesystem::path(folder) / kPredictionFile,
                       textOf(predictionOf(problem, candidate)), errors);
}

} // namespace mtplan::tools
