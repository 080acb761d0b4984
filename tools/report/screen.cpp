//===- screen.cpp - The report on the screen ------------------------------===//

#include "tools/report/screen.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/driver/parallelism_text.h"
#include "tools/driver/rejections.h"
#include "tools/report/objective_text.h"
#include "tools/report/plan_rows.h"
#include "tools/report/sends.h"
#include "tools/report/validated_terms.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::LedgerPhase;
using planner::PlannedCandidate;

namespace {

std::string bold(const std::string &text, const ScreenStyle &style) {
  return style.colour ? "\033[1m" + text + "\033[0m" : text;
}

std::string planTable(const PlanFacts &facts) {
  Table table;
  table.add({"segment", "operators", "strategy", "on one GPU", "then forward",
             "and backward"});
  std::vector<PlanRow> before;
  std::string segment;
  for (const RunFact &run : runsShown(facts)) {
    std::string name = nameOf(run);
    std::vector<PlanRow> rows = rowsOf(run, facts.setting.mesh);
    bool again = run.segment == segment && rows.size() == before.size();
    if (again) {
      table.add({name, "as above, but"});
      name.clear();
    }
    // Runs that differ in few rows print only these rows.
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const PlanRow &row = rows[i];
      if (again && row == before[i])
        continue;
      table.add({name, row.operators, row.strategy, row.shape, row.forward,
                 row.backward});
      name.clear();
    }
    before = std::move(rows);
    segment = run.segment;
  }
  return table.print("  ");
}

std::string timeSection(const Problem &problem, const PlanFacts &facts,
                        const PlannedCandidate &plan,
                        const ScreenStyle &style) {
  const planner::StepTime &time = plan.time;
  std::string parts;
  auto add = [&](const char *what, planner::Seconds part) {
    if (part.value > 0)
      parts += fmt::format("{}{} {} ({})", parts.empty() ? "" : ", ", what,
                           timeText(part), percentText(part / time.step));
  };
  add("compute", time.compute);
  add("tensor communication", time.tensor);
  add("context communication", time.context);
  add("data communication", time.data);
  add("pipeline", time.pipeline);
  add("host", time.host);
  add("local copies", time.local);
  add("update", time.update);
  return bold("Step", style) +
         fmt::format(
             "  {}: {} tokens/s, {} TFLOP/s per GPU of the model's products, "
             "MFU {} of {} {}\n",
             timeText(time.step), countText(facts.tokensPerSecond),
             fmt::format("{:.1f}", facts.modelRate.value / 1e12),
             percentText(facts.mfu), problem.machine.device.name,
             nameOf(problem.options.precision)) +
         "  " + parts +
         (plan.config.recompute == planner::Recompute::none
              ? "; nothing is recomputed\n"
              : "; layers are computed twice forward\n");
}

// Adds a row per group of equal boundaries between stages.
void addSends(Table &table, const std::vector<Send> &sends) {
  for (std::size_t i = 0; i < sends.size();) {
    std::size_t end = i + 1;
    while (end < sends.size() && sends[end].phase == sends[i].phase &&
           sends[end].bytes == sends[i].bytes &&
           sends[end].time == sends[i].time)
      ++end;
    table.add(
        {"between stages", nameOf(sends[i].phase), timeText(sends[i].time),
         fmt::format("send pp {}{}", bytesText(sends[i].bytes),
                     end - i > 1 ? fmt::format(", at {} boundaries", end - i)
                                 : "")});
    i = end;
  }
}

std::string communicationSection(const Problem &problem, const PlanFacts &facts,
                                 const PlannedCandidate &plan,
                                 const ScreenStyle &style) {
  std::string text =
      bold("Communication", style) + "  per copy and micro-batch\n";
  Table table;
  const planner::Mesh &mesh = facts.setting.mesh;
  for (const RunFact &run : runsShown(facts))
    for (LedgerPhase phase : {LedgerPhase::forward, LedgerPhase::backward}) {
      planner::Seconds time;
      std::string summary = summaryOf(run, phase, mesh, time);
      if (!summary.empty())
        table.add({nameOf(run), nameOf(phase), timeText(time), summary});
    }
  addSends(table, sendsOf(problem, facts, plan));
  // These collectives run once per step: gradients and the loss.
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    std::int64_t count = 0;
    planner::Bytes bytes;
    planner::Seconds time;
    for (const planner::LedgerEntry &entry : facts.collectives)
      if (entry.phase == LedgerPhase::update &&
          entry.axis == static_cast<int>(axis)) {
        count += entry.perStep;
        bytes += entry.bytes * static_cast<double>(entry.perStep);
        time += entry.time * static_cast<double>(entry.perStep);
      }
    if (count > 0)
      table.add({"once a step", "update", timeText(time),
                 fmt::format("{} over {}, {} in all", count,
                             mesh.axes[axis].name, bytesText(bytes))});
  }
  std::string rows = table.print("  ");
  return text + (rows.empty() ? "  none\n" : rows);
}

std::string alternativesSection(const PlanOutcome &outcome,
                                const ScreenStyle &style) {
  const PlannedCandidate &best = *outcome.best();
  const std::vector<PlannedCandidate> &plans = outcome.result.plans;
  // A column is left out if all its values are defaults.
  bool chosen = std::ranges::any_of(plans, [](const PlannedCandidate &plan) {
    return !choicesText(plan.config).empty();
  });
  Table table;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const PlannedCandidate &plan = plans[i];
    std::vector<std::string> row = {
        meshText(plan.config), batchText(plan.config), timeText(plan.time.step),
        fmt::format("{} GiB", gibText(plan.memory.total()))};
    std::string choices = choicesText(plan.config);
    if (chosen)
      row.push_back(choices.empty() ? "-" : choices);
    row.push_back(fmt::format("{}: {}", slowdownText(plan, best),
                              reasonAgainst(plan, best)));
    table.add(std::move(row));
  }
  std::string rows = table.print("  ");
  rows += rejectedText(outcome);
  return rows.empty() ? "" : bold("Alternatives", style) + '\n' + rows;
}

std::string searchLine(const PlanOutcome &outcome, const ScreenStyle &style) {
  std::string text = claimText(outcome);
  if (style.timings)
    text += fmt::format(", in {}", timeText({outcome.searchSeconds}));
  return text + '\n';
}

} // namespace

std::string rejectedText(const PlanOutcome &outcome) {
  constexpr std::size_t kMost = 8;
  std::vector<RejectedMesh> meshes = rejectedMeshes(outcome);
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, meshes.size()); ++i)
    text += "  " + meshText(meshes[i].nearest->config) + ": " +
            reasonText(meshes[i], outcome) + '\n';
  if (meshes.size() > kMost)
    text += fmt::format("  and {} more meshes (--json lists them)\n",
                        meshes.size() - kMost);
  return text;
}

std::string headingOf(const Problem &problem, const ScreenStyle &style) {
  const ir::LoadedModel &model = problem.model;
  std::string shape;
  auto add = [&](const char *what, const std::optional<std::int64_t> &value) {
    if (value)
      shape += fmt::format(", {} {}", what, *value);
  };
  add("hidden", model.hidden);
  add("heads", model.heads);
  if (model.kvHeads != model.heads)
    add("key/value heads", model.kvHeads);
  add("vocabulary", model.vocabulary);
  if (model.paddedVocabulary && model.paddedVocabulary != model.vocabulary)
    shape += fmt::format(" (stored as {})", *model.paddedVocabulary);
  const planner::Device &device = problem.machine.device;
  planner::Precision precision = problem.options.precision;
  std::string text =
      bold(model.name, style) +
      fmt::format("  {} parameters, layers {}{}, sequence {}\n",
                  countText(static_cast<double>(model.parameters)),
                  model.layers, shape, model.sequence) +
      bold(problem.machine.name, style) +
      fmt::format("  {} x {}, {} GiB each, {} node{}", problem.options.devices,
                  device.name, gibText(device.memory), nodesOf(problem),
                  nodesOf(problem) == 1 ? "" : "s");
  if (auto peak = device.peak(precision))
    text += peak->value < 1e12
                ? fmt::format(", {} at {:.0f} GFLOP/s", nameOf(precision),
                              peak->value / 1e9)
                : fmt::format(", {} at {:.0f} TFLOP/s", nameOf(precision),
                              peak->value / 1e12);
  return text + '\n';
}

std::string memoryText(const planner::MemoryUse &memory) {
  std::string text = fmt::format(
      "  parameters {}, gradients {}, optimizer {}, activations {}, workspace "
      "{}, spare {}, reserved {}\n",
      gibText(memory.parameters), gibText(memory.gradients),
      gibText(memory.optimizer), gibText(memory.activations),
      gibText(memory.workspace), gibText(memory.spare),
      gibText(memory.reserved));
  if (memory.host.value > 0)
    text +=
        fmt::format("  on the host {} of {} GiB per GPU: the optimizer, and "
                    "what comes and goes\n",
                    gibText(memory.host), gibText(memory.hostLimit));
  return text;
}

std::string marginsText(const planner::Device &device) {
  if (device.reservedContext.value + device.reservedBuffers.value == 0)
    return "";
  return fmt::format("  of what is reserved: context and libraries {}, buffers "
                     "of collectives {}, slack {}; fragmentation none, as "
                     "offsets are planned\n",
                     gibText(device.reservedContext),
                     gibText(device.reservedBuffers),
                     gibText(device.reserved - device.reservedContext -
                             device.reservedBuffers));
}

std::string screenOf(const PlanOutcome &outcome, const ScreenStyle &style) {
  const Problem &problem = *outcome.problem;
  const PlannedCandidate &plan = *outcome.best();
  PlanFacts facts = factsOf(problem, plan);
  std::string choices = choicesText(plan.config);
  std::string text = headingOf(problem, style);
  for (const std::string &note : problem.notes)
    text += "note: " + note + '\n';
  text += bold("Plan", style) +
          fmt::format("  {}, {}, global batch {}, sequence parallel {}{}\n",
                      meshText(plan.config), batchText(plan.config),
                      problem.options.globalBatch,
                      facts.sequenceParallel ? "on" : "off",
                      choices.empty() ? "" : ", " + choices);
  text += planTable(facts);
  text += timeSection(problem, facts, plan, style);
  if (std::string tiled = tiledText(facts); !tiled.empty())
    text += "  in tiles: " + tiled + '\n';
  if (std::string leans = unvalidatedText(problem, plan); !leans.empty())
    text += "  " + leans + '\n';
  text += bold("Memory", style) +
          fmt::format("  {} of {} GiB per GPU{}\n",
                      gibText(plan.memory.total()), gibText(plan.memory.limit),
                      plan.config.pp > 1
                          ? fmt::format(", of stage {}", plan.fullestStage)
                          : "") +
          memoryText(plan.memory) + marginsText(problem.machine.device);
  text += communicationSection(problem, facts, plan, style);
  text += alternativesSection(outcome, style);
  return text + objectiveText(outcome) + searchLine(outcome, style);
}

} // namespace mtplan::tools
