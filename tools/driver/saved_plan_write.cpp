//===- saved_plan_write.cpp - Writing a saved plan ------------------------===//

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "llvm/Support/raw_ostream.h"

#include "planner/machine/software_json.h"
#include "tools/driver/constraints.h"
#include "tools/driver/rejections.h"
#include "tools/driver/saved_plan.h"

namespace mtplan::tools {

using nlohmann::ordered_json;
using planner::PlannedCandidate;

namespace {

ordered_json howJson(const planner::Parallelism &config) {
  return {{"dp", config.dp},
          {"tp", config.tp},
          {"pp", config.pp},
          {"cp", config.cp},
          {"ep", config.ep},
          {"schedule", nameOf(config.schedule)},
          {"virtual_stages", config.virtualStages},
          {"stage_layers", config.layers},
          {"micro_batch", config.microBatch},
          {"zero", config.zeroStage},
          {"zero_ranks", config.zeroRanks},
          {"recompute", nameOf(config.recompute)},
          {"recompute_layers", config.recomputeLayers},
          {"offload", nameOf(config.offload)},
          {"tiles", config.tiles}};
}

// Infinity becomes null, because JSON has no infinity.
ordered_json secondsJson(planner::Seconds seconds) {
  return std::isfinite(seconds.value) ? ordered_json(seconds.value)
                                      : ordered_json(nullptr);
}

ordered_json planJson(const Problem &problem, const PlannedCandidate &plan) {
  planner::Setting setting =
      planner::settingOf(problem.options, problem.machine, plan.config);
  ordered_json runs = ordered_json::array(), parts = ordered_json::array();
  for (const std::vector<planner::SegmentPlan> &part : plan.parts) {
    ordered_json held = ordered_json::array();
    for (const planner::SegmentPlan &one : part) {
      ordered_json run = runJson(problem.graph, one, setting.mesh);
      auto same = std::ranges::find(runs, run);
      held.push_back({{"run", same - runs.begin()},
                      {"first", one.first},
                      {"copies", one.count}});
      if (same == runs.end())
        runs.push_back(std::move(run));
    }
    parts.push_back(std::move(held));
  }
  return {{"parallelism", howJson(plan.config)},
          {"step_time_s", plan.time.step.value},
          {"at_least_s", secondsJson(plan.lowerBound)},
          {"optimal", plan.optimal},
          {"parts", std::move(parts)},
          {"runs", std::move(runs)}};
}

ordered_json searchJson(const PlanOutcome &outcome) {
  const planner::SearchResult &result = outcome.result;
  ordered_json rejections = ordered_json::array();
  for (const RejectedMesh &mesh : rejectedMeshes(outcome)) {
    const planner::Rejection &one = *mesh.nearest;
    ordered_json entry = {{"dp", one.config.dp},
                          {"tp", one.config.tp},
                          {"pp", one.config.pp},
                          {"cp", one.config.cp},
                          {"micro_batch", one.config.microBatch},
                          {"candidates", mesh.candidates},
                          {"reason", nameOf(one.reason)}};
    entry["at_least_s"] = secondsJson(one.bound);
    entry["needs_bytes"] = one.needed.value;
    entry["is_floor"] = one.isLowerBound;
    entry["detail"] = one.detail;
    rejections.push_back(std::move(entry));
  }
  ordered_json attempts = ordered_json::array();
  for (const Attempt &attempt : outcome.attempts)
    attempts.push_back({{"what", attempt.what}, {"failure", attempt.failure}});
  return {{"candidates", result.candidates},
          {"pruned", result.pruned},
          {"solved", result.solved},
          {"refused", result.refused},
          {"unreached", result.unreached},
          {"optimal", result.optimal},
          {"at_least_s", secondsJson(result.lowerBound)},
          {"attempts", std::move(attempts)},
          {"rejections", std::move(rejections)}};
}

} // namespace

// The fingerprint is FNV-1a over the model before any decision.
std::string fingerprintOf(const Problem &problem) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::ModuleOp(problem.model.module.get()).print(stream);
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : stream.str())
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

std::string savedPlanOf(const PlanOutcome &outcome) {
  const Problem &problem = *outcome.problem;
  const ir::LoadedModel &model = problem.model;
  ordered_json file = {{"mtplan_plan", kPlanFileVersion},
                       {"written_by", "mtplan " MTPLAN_VERSION}};
  file["model"] = {{"file", outcome.asked.model},
                   {"name", model.name},
                   {"layers", model.layers},
                   {"sequence", model.sequence},
                   {"parameters", model.parameters},
                   {"fingerprint", fingerprintOf(problem)}};
  file["asked"] = constraintsOf(outcome.asked, problem);
  file["search"] = searchJson(outcome);
  ordered_json &plans = file["plans"] = ordered_json::array();
  for (const PlannedCandidate &plan : outcome.result.plans)
    plans.push_back(planJson(problem, plan));
  file["machine"] = ordered_json::parse(problem.machineText);
  file["software"] = ordered_json::parse(problem.softwareText.empty()
                                             ? planner::softwareText("mtplan")
                                             : problem.softwareText);
  return file.dump(1, ' ', false, ordered_json::error_handler_t::replace) +
         '\n';
}

} // namespace mtplan::tools
