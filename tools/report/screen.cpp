//===- screen.cpp - The report on the screen ------------------------------===//

#include <algorithm>

#include <fmt/format.h>

#include "planner/machine/interval.h"
#include "tools/driver/plan_text.h"
#include "tools/report/comparison.h"
#include "tools/report/plan_facts.h"
#include "tools/report/plan_rows.h"
#include "tools/report/report.h"
#include "tools/text/table.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::LedgerPhase;
using planner::PlannedCandidate;

namespace {

std::string bold(const std::string &text, const ScreenStyle &style) {
  return style.colour ? "\033[1m" + text + "\033[0m" : text;
}

std::string planTable(const std::vector<PlanBlock> &blocks) {
  Table table;
  table.add({"segment", "operators", "strategy", "on one GPU", "then forward",
             "and backward"});
  const PlanBlock *before = nullptr;
  for (const PlanBlock &block : blocks) {
    std::string name = nameOf(block);
    // If the previous block has the same segment, only rows that differ are
    // printed.
    const bool again = before && before->segment == block.segment;
    if (again) {
      table.add({name, "as above, but"});
      name.clear();
    }
    for (const PlanRow &row : block.rows) {
      if (again && std::ranges::find(before->rows, row) != before->rows.end())
        continue;
      table.add({name, row.operators, row.strategy, row.shape, row.forward,
                 row.backward});
      name.clear();
    }
    before = &block;
  }
  return table.print("  ");
}

std::string recomputedText(const planner::Parallelism &config) {
  switch (config.recompute) {
  case planner::Recompute::none:
    return "nothing is recomputed";
  case planner::Recompute::selective:
    return "attention's core is computed twice forward";
  case planner::Recompute::full:
    break;
  }
  const bool one = config.recomputeLayers == 1;
  return config.recomputeLayers < 0
             ? "layers are computed twice forward"
             : fmt::format("{} layer{} of each virtual stage {} computed twice "
                           "forward",
                           config.recomputeLayers, one ? "" : "s",
                           one ? "is" : "are");
}

// Returns the interval of the step time, and how many runs are behind it.
std::string intervalText(const Problem &problem, planner::Seconds step) {
  const planner::StepInterval found =
      planner::stepInterval(*problem.options.software, problem.machine.device,
                            problem.options.devices);
  const std::string runs =
      found.runs
          ? fmt::format("{} measured run{} on {}", found.runs->runs,
                        found.runs->runs == 1 ? "" : "s", found.runs->device)
          : "no measured run validates it";
  return fmt::format("in 8 of 10 cases {} to {} ({})",
                     timeText(found.interval.low * step),
                     timeText(found.interval.high * step), runs);
}

std::string timeSection(const Problem &problem, const PlanFacts &facts,
                        const PlannedCandidate &plan,
                        const ScreenStyle &style) {
  const planner::StepTime &time = plan.time;
  std::string parts;
  for (const TimeTerm &term : kTimeTerms) {
    const planner::Seconds part = time.*term.time;
    if (part.value > 0)
      parts += fmt::format("{}{} {} ({})", parts.empty() ? "" : ", ", term.name,
                           timeText(part), percentText(part / time.step));
  }
  return bold("Step", style) +
         fmt::format("  {}: {}, {} tokens/s, {:.1f} TFLOP/s per GPU of the "
                     "model's products, MFU {} of {} {}\n",
                     timeText(time.step), intervalText(problem, time.step),
                     countText(facts.tokensPerSecond),
                     facts.modelRate.value / 1e12, percentText(facts.mfu),
                     problem.machine.device.name,
                     nameOf(problem.options.precision)) +
         "  " + parts + "; " + recomputedText(plan.config) + '\n';
}

// Adds a row per group of consecutive boundaries between stages that have equal
// messages.
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
  std::string text = bold("Communication", style) + "  per GPU and step";
  if (plan.config.pp > 1)
    text += ", mean over the stages";
  const char *between = tiedSumsOf(problem, facts, plan).empty()
                            ? "messages"
                            : "messages and sums";
  Table table;
  for (const auto &[axis, traffic] : trafficByAxis(problem, facts, plan)) {
    const double stages = plan.config.pp;
    table.add({axis, timeText(traffic.time / stages),
               fmt::format("{} in {:.0f} {}", bytesText(traffic.bytes / stages),
                           static_cast<double>(traffic.count) / stages,
                           axis == "pp" ? between : "collectives")});
  }
  std::string rows = table.print("  ");
  if (rows.empty())
    return text + ": none\n";
  return text + "; exposed and hidden\n" + rows;
}

std::string collectivesText(const Problem &problem, const PlanFacts &facts,
                            const PlannedCandidate &plan,
                            const std::vector<PlanBlock> &blocks) {
  std::string text = "  per layer and micro-batch\n";
  Table table;
  const planner::Mesh &mesh = facts.setting.mesh;
  for (const PlanBlock &block : blocks)
    for (const PhaseTraffic &traffic : block.traffic)
      if (!traffic.collectives.empty())
        table.add({nameOf(block), nameOf(traffic.phase), timeText(traffic.time),
                   traffic.collectives});
  addSends(table, sendsOf(problem, facts, plan));
  for (const TiedSum &sum : tiedSumsOf(problem, facts, plan))
    table.add({"between stages", "update", timeText(sum.time),
               fmt::format("all_reduce pp {}: the gradient of {}",
                           bytesText(sum.bytes), sum.parameter)});
  // These collectives run once per step, on gradients, weights and the loss.
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
  if (const std::optional<Agreement> all = agreementOf(facts, plan))
    table.add({"once a step", "update", "",
               fmt::format("all_gather over all ranks {}: {}",
                           bytesText(all->bytes), all->values)});
  std::string rows = table.print("    ");
  return rows.empty() ? "" : text + rows;
}

// Returns a line per mesh without a plan, nearest first, and the number of
// other meshes.
std::string rejectedText(const PlanOutcome &outcome) {
  constexpr std::size_t most = 8;
  std::vector<RejectedMesh> meshes = rejectedMeshes(outcome);
  std::string text;
  for (std::size_t i = 0; i < std::min(most, meshes.size()); ++i)
    text += "  " + meshText(meshes[i].nearest->config) + ": " +
            reasonText(meshes[i], outcome) + '\n';
  if (meshes.size() > most)
    text += fmt::format("  and {} more meshes (--json lists them)\n",
                        meshes.size() - most);
  return text;
}

std::string alternativesSection(const PlanOutcome &outcome,
                                const ScreenStyle &style) {
  const PlannedCandidate &best = *outcome.best();
  const std::vector<PlannedCandidate> &plans = outcome.result.plans;
  bool chosen = std::ranges::any_of(plans, [](const PlannedCandidate &plan) {
    return !choicesText(plan.config).empty();
  });
  // Shows the first of several plans that differ only in their stages' layers.
  auto differsInLayersOnly = [&](std::size_t i) {
    return std::any_of(plans.begin(),
                       plans.begin() + static_cast<std::ptrdiff_t>(i),
                       [&](const PlannedCandidate &earlier) {
                         planner::Parallelism like = earlier.config;
                         like.layers = plans[i].config.layers;
                         return like == plans[i].config;
                       });
  };
  Table table;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    if (differsInLayersOnly(i))
      continue;
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
  if (std::size_t others = rejectedMeshes(outcome).size(); others > 0)
    rows += fmt::format("  {} other mesh{} slower or do{} not fit (--explain "
                        "says by how much)\n",
                        others, others == 1 ? " is" : "es are",
                        others == 1 ? "es" : "");
  return rows.empty() ? "" : bold("Alternatives", style) + '\n' + rows;
}

std::string unvalidatedText(const Problem &problem,
                            const PlannedCandidate &plan) {
  Unvalidated found = unvalidatedOf(problem, plan);
  std::string text;
  for (const UnvalidatedTerm &term : found.terms)
    text += fmt::format("{}{} ({} {})", text.empty() ? "" : ", ", term.name,
                        timeText(term.step), term.without);
  if (text.empty())
    return text;
  text = "no published run validates " + text;
  if (found.terms.size() > 1)
    text += "; without all of them " + timeText(found.step);
  return text;
}

// Returns the result of the objectives gpus and memory, such as "GPUs  32 are
// the fewest ...", with lines for the last failed attempts. Returns "" for the
// objective step-time.
std::string objectiveText(const PlanOutcome &outcome) {
  if (outcome.asked.objective == Objective::stepTime)
    return "";
  const Problem &problem = *outcome.problem;
  std::string within =
      outcome.asked.maxStepTime
          ? " for a step within " + timeText(*outcome.asked.maxStepTime)
          : "";
  std::string text;
  if (outcome.asked.objective == Objective::gpus)
    text = outcome.best()
               ? fmt::format("GPUs  {} are the fewest{}, of divisors of a node "
                             "and whole nodes\n",
                             problem.options.devices, within)
               : fmt::format("GPUs  no number tried is enough{}\n", within);
  else if (outcome.best())
    text = fmt::format("Least memory  {} of a GPU{}\n",
                       preciseGibText(outcome.best()->memory.total()), within);
  else
    return "";
  // The last attempts came nearest to a plan. For a bisection of memory, only
  // the last attempt is shown.
  const std::size_t kMostLines =
      outcome.asked.objective == Objective::memory ? 1 : 8;
  std::size_t count = outcome.attempts.size();
  std::size_t first = count > kMostLines ? count - kMostLines : 0;
  if (first > 0 && kMostLines > 1)
    text += fmt::format("  {} smaller ones failed before\n", first);
  for (std::size_t i = first; i < count; ++i)
    text += "  " + outcome.attempts[i].what + ": " +
            outcome.attempts[i].failure + '\n';
  return text;
}

std::string memoryText(const planner::MemoryUse &memory) {
  std::string text;
  for (const MemoryClass &one : kMemoryClasses)
    text += fmt::format("{}{} {}", text.empty() ? "  " : ", ", one.name,
                        gibText(memory.*one.bytes));
  text += '\n';
  if (memory.host.value > 0)
    text += fmt::format("  on the host {} of {} GiB per GPU: the optimizer "
                        "state, received gradients and sent weights\n",
                        gibText(memory.host), gibText(memory.hostLimit));
  return text;
}

// Returns "" if the machine file does not say what the reserved memory is for.
std::string marginsText(const planner::Device &device,
                        const planner::MemoryUse &memory) {
  if (device.reservedContext.value + device.reservedBuffers.value == 0)
    return "";
  return fmt::format(
      "  of what is reserved: context and libraries {}, buffers of collectives "
      "{}, slack {}; {}\n",
      gibText(device.reservedContext), gibText(device.reservedBuffers),
      gibText(device.reserved - device.reservedContext -
              device.reservedBuffers),
      memory.cached > 0 ? "cached by the allocator " +
                              gibText(memory.reserved - device.reserved)
                        : "fragmentation none, as offsets are planned");
}

// Explains that ZeRO 2 and 3 are tried with a pipeline only if no other ZeRO
// stage is allowed. Returns nothing without a pipeline, for a single replica,
// or if the request excludes ZeRO 2 and 3.
std::string zeroText(const Problem &problem,
                     const planner::Parallelism &config) {
  const auto &asked = problem.options.zeroStage;
  if (config.pp == 1 || config.dp * config.cp == 1 ||
      (!asked.allows(2) && !asked.allows(3)))
    return "";
  return fmt::format(
      "  ZeRO 2 and 3 with a pipeline are planned only with --zero 2 or 3: "
      "they reduce-scatter gradients in each of {} micro-batches, ZeRO 1 once "
      "a step, and the {} stages already divide the gradients\n",
      config.microBatches(), config.pp);
}

// Returns whether no mesh is fast enough: either the plan found exceeds the
// requested time, or the lower bounds of all meshes do. Meshes with illegal
// degrees are ignored.
bool nothingIsFast(const PlanOutcome &outcome) {
  using Reason = planner::Rejection::Reason;
  const auto &nearest = outcome.result.nearest;
  if (nearest && nearest->fits)
    return true;
  bool anySlow = false;
  for (const RejectedMesh &mesh : rejectedMeshes(outcome)) {
    const Reason reason = mesh.nearest->reason;
    if (reason != Reason::bound && reason != Reason::divisor)
      return false;
    anySlow = anySlow || reason == Reason::bound;
  }
  return anySlow;
}

} // namespace

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
  const std::vector<PlanBlock> blocks = blocksOf(
      facts, outcome.asked.explain ? RowDetail::all : RowDetail::summary);
  text += planTable(blocks);
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
          memoryText(plan.memory) +
          (outcome.asked.explain
               ? marginsText(problem.machine.device, plan.memory) +
                     zeroText(problem, plan.config)
               : "");
  text += communicationSection(problem, facts, plan, style);
  if (outcome.asked.explain)
    text += collectivesText(problem, facts, plan, blocks);
  text += alternativesSection(outcome, style);
  text += objectiveText(outcome) + claimText(outcome);
  if (style.timings)
    text += fmt::format(", in {}", timeText({outcome.searchSeconds}));
  return text + '\n';
}

std::string infeasibleText(const PlanOutcome &outcome,
                           const std::vector<std::string> &remedies,
                           const ScreenStyle &style) {
  const Problem &problem = *outcome.problem;
  std::string text = headingOf(problem, style);
  for (const std::string &note : problem.notes)
    text += "note: " + note + '\n';
  const bool slow = nothingIsFast(outcome);
  const auto &most = outcome.asked.maxStepTime;
  text += fmt::format(
      "{}, of {} candidate{}.\n",
      slow && most ? "No plan is fast enough for a step in " + timeText(*most)
      : nothingIsLegal(outcome) ? "N" + nothingLegalText(outcome).substr(1)
                                : "Nothing fits",
      outcome.result.candidates, outcome.result.candidates == 1 ? "" : "s");
  // The plan with the least memory is left out if no mesh is fast enough.
  if (const auto &nearest = outcome.result.nearest;
      nearest && (nearest->fits || !slow))
    text += "Nearest: " + candidateText(*nearest) + '\n' +
            memoryText(nearest->memory) +
            marginsText(problem.machine.device, nearest->memory);
  text += objectiveText(outcome);
  text += rejectedText(outcome);
  if (remedies.empty())
    return text + "Nothing that was tried would fit.\n";
  text += "What would fit:\n";
  for (const std::string &remedy : remedies)
    text += "  " + remedy + '\n';
  return text;
}

} // namespace mtplan::tools
