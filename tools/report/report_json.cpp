//===- report_json.cpp - The report as JSON -------------------------------===//

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/integers.h"
#include "planner/machine/interval.h"
#include "planner/search/simplest.h"
#include "tools/driver/plan_text.h"
#include "tools/report/comparison.h"
#include "tools/report/plan_facts.h"
#include "tools/report/report.h"

namespace mtplan::tools {

using Json = nlohmann::ordered_json;
using planner::PlannedCandidate;

namespace {

template <typename Value> Json orNull(const std::optional<Value> &value) {
  return value ? Json(*value) : Json(nullptr);
}

Json modelJson(const ir::LoadedModel &model) {
  return {{"name", model.name},
          {"family", model.family},
          {"parameters", model.parameters},
          {"padding_parameters", model.paddingParameters},
          {"layers", model.layers},
          {"sequence", model.sequence},
          {"hidden", orNull(model.hidden)},
          {"heads", orNull(model.heads)},
          {"kv_heads", orNull(model.kvHeads)},
          {"vocabulary", orNull(model.vocabulary)},
          {"padded_vocabulary", orNull(model.paddedVocabulary)}};
}

Json hardwareJson(const Problem &problem) {
  const planner::Device &device = problem.machine.device;
  auto peak = device.peak(problem.options.precision);
  return {{"name", problem.machine.name},
          {"gpus", problem.options.devices},
          {"nodes", nodesOf(problem)},
          {"device", device.name},
          {"memory_bytes", device.memory.value},
          {"precision", nameOf(problem.options.precision)},
          {"peak_flops", peak ? Json(peak->value) : Json(nullptr)}};
}

Json memoryJson(const planner::MemoryUse &memory) {
  Json json;
  for (const MemoryClass &one : kMemoryClasses)
    json[one.name] = (memory.*one.bytes).value;
  json["total"] = memory.total().value;
  json["limit"] = memory.limit.value;
  return json;
}

// Writes the host memory of one GPU. The limit is the GPU's share of the node's
// host memory.
Json hostJson(const planner::MemoryUse &memory) {
  return {{"optimizer", memory.host.value},
          {"limit", memory.hostLimit.value > 0 ? Json(memory.hostLimit.value)
                                               : Json(nullptr)}};
}

Json breakdownJson(const planner::StepTime &time) {
  return {{"compute", time.compute.value},
          {"recompute", 0.0},
          {"tensor_communication", time.tensor.value},
          {"context_communication", time.context.value},
          {"expert_communication", time.exchange.value},
          {"data_communication", time.data.value},
          {"pipeline", time.pipeline.value},
          {"host", time.host.value},
          {"host_launches", time.launch.value},
          {"local_copies", time.local.value},
          {"update", time.update.value}};
}

Json configurationJson(const planner::Parallelism &config) {
  Json value = {{"dp", config.dp},
                {"tp", config.tp},
                {"pp", config.pp},
                {"cp", config.cp},
                {"ep", config.ep},
                {"virtual_stages", config.virtualStages},
                {"schedule", nameOf(config.schedule)},
                {"layers", config.layers},
                {"zero", config.zeroStage},
                {"zero_ranks", config.zeroRanks},
                {"recompute", nameOf(config.recompute)},
                {"offload", nameOf(config.offload)},
                {"tiles", config.tiles},
                {"micro_batch", config.microBatch},
                {"micro_batches", config.microBatches()}};
  if (config.tp2 > 1)
    value["tp2"] = config.tp2;
  return value;
}

Json planJson(const Problem &problem, const PlannedCandidate &plan,
              const PlanFacts &facts) {
  Json ops = Json::array(), parameters = Json::array();
  for (const RunFact &run : facts.runs) {
    for (const OpFact &op : run.ops)
      ops.push_back(
          {{"segment", run.segment},
           {"first", run.first},
           {"copies", run.copies},
           {"label", op.label},
           {"kind", op.kind},
           {"phase",
            op.phase == planner::Phase::forward ? "forward" : "backward"},
           {"strategy", op.strategy},
           {"local_shape", op.shape},
           {"layout", op.layout}});
    for (const ParameterFact &parameter : run.parameters)
      parameters.push_back(
          {{"segment", run.segment},
           {"first", run.first},
           {"copies", run.copies},
           {"label", parameter.label},
           {"global_shape", parameter.globalShape},
           {"local_shape", parameter.shape},
           {"bytes", parameter.bytes.value},
           {"layout", parameter.layout},
           {"reduce_once_per_step", parameter.isReducedOncePerStep}});
  }
  Json json = configurationJson(plan.config);
  json["global_batch"] = problem.options.globalBatch;
  json["sequence_parallel"] = facts.sequenceParallel;
  json["kinds"] = planner::kindsOfLayers(facts.graph, plan.parts);
  json["ops"] = std::move(ops);
  json["parameters"] = std::move(parameters);
  return json;
}

Json stagesJson(const std::vector<StageFact> &stages) {
  Json list = Json::array();
  for (const StageFact &stage : stages)
    list.push_back({{"memory_bytes", memoryJson(stage.memory)},
                    {"time_s", stage.busy.value}});
  return list;
}

// Writes the first rank of the fullest stage, and the operator at which the
// memory use peaks.
Json peakJson(const PlannedCandidate &plan, const PlanFacts &facts) {
  const planner::MemoryUse &memory = plan.memory;
  Json json = {{"stage", plan.fullestStage},
               {"rank", plan.fullestStage * facts.setting.mesh.ranks()},
               {"phase", nullptr},
               {"operator", nullptr}};
  if (memory.peakOp < 0)
    return json;
  const planner::Op &op = facts.graph.segments[planner::at(memory.peakSegment)]
                              .ops[planner::at(memory.peakOp)];
  json["phase"] = op.phase == planner::Phase::forward ? "forward" : "backward";
  json["operator"] = op.name;
  return json;
}

Json intervalJson(const Problem &problem, planner::Seconds step) {
  const planner::StepInterval found =
      planner::stepInterval(*problem.options.software, problem.machine.device,
                            problem.options.devices);
  Json json = {{"low", (found.interval.low * step).value},
               {"high", (found.interval.high * step).value},
               {"runs", found.runs ? found.runs->runs : 0},
               {"device", nullptr},
               {"most_gpus", nullptr}};
  if (found.runs) {
    json["device"] = found.runs->device;
    json["most_gpus"] = found.runs->mostDevices;
  }
  return json;
}

Json predictionJson(const Problem &problem, const PlannedCandidate &plan,
                    const PlanFacts &facts) {
  return {{"step_time_s", plan.time.step.value},
          {"step_interval_s", intervalJson(problem, plan.time.step)},
          {"tokens_per_s", facts.tokensPerSecond},
          {"model_tflops_per_gpu", facts.modelRate.value / 1e12},
          {"mfu", facts.mfu},
          {"memory_bytes", memoryJson(plan.memory)},
          {"host_memory_bytes", hostJson(plan.memory)},
          {"peak", peakJson(plan, facts)},
          {"stages", stagesJson(stagesOf(problem, facts, plan))},
          {"breakdown_s", breakdownJson(plan.time)}};
}

Json unvalidatedJson(const Unvalidated &found) {
  Json terms = Json::array();
  for (const UnvalidatedTerm &term : found.terms)
    terms.push_back({{"term", term.name},
                     {"instead", term.without},
                     {"step_time_s", term.step.value}});
  return {{"terms", std::move(terms)}, {"step_time_s", found.step.value}};
}

Json collectivesJson(const Problem &problem, const PlannedCandidate &plan,
                     const PlanFacts &facts) {
  Json list = Json::array();
  for (const planner::LedgerEntry &entry : facts.collectives)
    list.push_back(
        {{"kind", nameOf(entry.kind)},
         {"axis",
          facts.setting.mesh.axes[static_cast<std::size_t>(entry.axis)].name},
         {"bytes", entry.bytes.value},
         {"count_per_step", entry.perStep},
         {"phase", nameOf(entry.phase)},
         {"cause", entry.cause},
         {"segment", entry.segment},
         {"count_per_micro_batch", entry.perMicroBatch},
         {"time_s", entry.time.value}});
  for (const Send &send : sendsOf(problem, facts, plan))
    list.push_back({{"kind", "send"},
                    {"axis", "pp"},
                    {"bytes", send.bytes.value},
                    {"count_per_step", plan.config.microBatches()},
                    {"phase", nameOf(send.phase)},
                    {"cause", fmt::format("part {} to {}", send.from, send.to)},
                    {"segment", send.segment},
                    {"count_per_micro_batch", 1},
                    {"time_s", send.time.value}});
  for (const TiedSum &sum : tiedSumsOf(problem, facts, plan))
    list.push_back({{"kind", "all_reduce"},
                    {"axis", "pp"},
                    {"bytes", sum.bytes.value},
                    {"count_per_step", sum.stages},
                    {"phase", "update"},
                    {"cause", sum.parameter},
                    {"segment", nullptr},
                    {"count_per_micro_batch", 0},
                    {"time_s", sum.time.value}});
  if (const std::optional<Agreement> all = agreementOf(facts, plan))
    list.push_back({{"kind", "all_gather"},
                    {"axis", "all"},
                    {"bytes", all->bytes.value},
                    {"count_per_step", 1},
                    {"phase", "update"},
                    {"cause", all->values},
                    {"segment", nullptr},
                    {"count_per_micro_batch", 0},
                    {"time_s", 0.0}});
  return list;
}

// gapJson returns the gap of the fastest plan found to the lower bound, and
// simplicityJson the slowdown of the chosen plan against the fastest plan. Both
// values are shares, and null without a plan.
Json gapJson(const PlanOutcome &outcome) {
  return outcome.best() ? Json(outcome.result.gap()) : Json(nullptr);
}
Json simplicityJson(const PlanOutcome &outcome) {
  const PlannedCandidate *best = outcome.best();
  return best ? Json(best->time.step / outcome.result.fastestStep() - 1.0)
              : Json(nullptr);
}

Json searchJson(const PlanOutcome &outcome, bool timings) {
  Json rejections = Json::array();
  for (const RejectedMesh &mesh : rejectedMeshes(outcome)) {
    const planner::Rejection &rejection = *mesh.nearest;
    const planner::Parallelism &config = rejection.config;
    Json entry = {{"dp", config.dp},
                  {"tp", config.tp},
                  {"pp", config.pp},
                  {"cp", config.cp},
                  {"candidates", mesh.candidates},
                  {"micro_batch", config.microBatch > 0
                                      ? Json(config.microBatch)
                                      : Json(nullptr)},
                  {"reason", nameOf(rejection.reason)}};
    if (config.tp2 > 1)
      entry["tp2"] = config.tp2;
    if (rejection.reason == planner::Rejection::Reason::bound ||
        rejection.reason == planner::Rejection::Reason::budget)
      entry["at_least_s"] = rejection.bound.value;
    if (rejection.reason == planner::Rejection::Reason::memory ||
        rejection.reason == planner::Rejection::Reason::host)
      entry["needs_bytes"] = rejection.needed.value;
    entry["detail"] = reasonText(mesh, outcome);
    rejections.push_back(std::move(entry));
  }
  return {{"candidates", outcome.result.candidates},
          {"pruned", outcome.result.pruned},
          {"solved", outcome.result.solved},
          {"refused", outcome.result.refused},
          {"unreached", outcome.result.unreached},
          {"time_s", timings ? Json(outcome.searchSeconds) : Json(nullptr)},
          {"optimal", outcome.result.optimal},
          {"gap", gapJson(outcome)},
          {"slower_than_fastest", simplicityJson(outcome)},
          {"lower_bound_s", std::isfinite(outcome.result.lowerBound.value)
                                ? Json(outcome.result.lowerBound.value)
                                : Json(nullptr)},
          {"rejections", std::move(rejections)}};
}

Json alternativeJson(const PlannedCandidate &plan,
                     const PlannedCandidate &best) {
  Json json = configurationJson(plan.config);
  json["step_time_s"] = plan.time.step.value;
  json["at_least_s"] = plan.lowerBound.value;
  json["slower_by"] = plan.time.step / best.time.step - 1;
  json["why"] = reasonAgainst(plan, best);
  json["optimal"] = plan.optimal;
  json["memory_bytes"] = memoryJson(plan.memory);
  json["host_memory_bytes"] = hostJson(plan.memory);
  json["breakdown_s"] = breakdownJson(plan.time);
  return json;
}

Json proofJson(const passes::Proof &proof) {
  return {{"holds", proof.holds},
          {"ranks", proof.ranks},
          {"tensors", proof.tensors},
          // JSON has no infinity.
          {"worst_error", std::isfinite(proof.worstError)
                              ? Json(proof.worstError)
                              : Json(nullptr)},
          {"worst", proof.worst},
          {"failures", proof.failures}};
}

// Names from files may be invalid UTF-8; invalid bytes become U+FFFD.
std::string print(const Json &json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

} // namespace

std::string jsonOf(const PlanOutcome &outcome, const JsonStyle &style) {
  const Problem &problem = *outcome.problem;
  const std::vector<PlannedCandidate> &plans = outcome.result.plans;
  Json alternatives = Json::array();
  for (std::size_t i = 1; i < plans.size(); ++i)
    alternatives.push_back(alternativeJson(plans[i], plans[0]));
  Json report = {{"mtplan", 1},
                 {"model", modelJson(problem.model)},
                 {"hardware", hardwareJson(problem)},
                 {"plan", nullptr},
                 {"prediction", nullptr},
                 {"collectives", Json::array()},
                 {"search", searchJson(outcome, style.timings)},
                 {"alternatives", std::move(alternatives)},
                 {"notes", problem.notes}};
  if (const PlannedCandidate *best = outcome.best()) {
    PlanFacts facts = factsOf(problem, *best);
    report["plan"] = planJson(problem, *best, facts);
    report["prediction"] = predictionJson(problem, *best, facts);
    const planner::Device &device = problem.machine.device;
    report["prediction"]["margins_bytes"] = {
        {"context", device.reservedContext.value},
        {"buffers", device.reservedBuffers.value},
        {"slack", (best->memory.reserved - device.reservedContext -
                   device.reservedBuffers)
                      .value}};
    report["prediction"]["unvalidated"] =
        unvalidatedJson(unvalidatedOf(problem, *best));
    report["collectives"] = collectivesJson(problem, *best, facts);
  } else if (const auto &nearest = outcome.result.nearest) {
    report["nearest"] = configurationJson(nearest->config);
    report["nearest"]["memory_bytes"] = memoryJson(nearest->memory);
    report["nearest"]["host_memory_bytes"] = hostJson(nearest->memory);
  }
  if (!outcome.attempts.empty() ||
      outcome.asked.objective != Objective::stepTime) {
    Json &objective = report["objective"];
    objective["least"] = nameOf(outcome.asked.objective);
    objective["tried"] = Json::array();
    for (const Attempt &attempt : outcome.attempts)
      objective["tried"].push_back(
          {{"what", attempt.what}, {"failure", attempt.failure}});
  }
  if (style.why)
    report["why"] = *style.why;
  if (style.remedies)
    report["remedies"] = *style.remedies;
  if (style.proof)
    report["proof"] = proofJson(*style.proof);
  return print(report);
}

std::string errorsJson(const std::vector<std::string> &errors) {
  return print({{"mtplan", 1}, {"errors", errors}});
}

} // namespace mtplan::tools
