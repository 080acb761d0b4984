//===- explain.cpp - Why other meshes are worse ---------------------------===//

#include "tools/report/explain.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "planner/search/solve_candidate.h"
#include "tools/driver/parallelism_text.h"
#include "tools/driver/rejections.h"
#include "tools/report/plan_facts.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;
using planner::Rejection;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Term {
  const char *name;
  planner::Seconds planner::StepTime::*time;
};
constexpr Term kTerms[] = {
    {"compute", &planner::StepTime::compute},
    {"tensor communication", &planner::StepTime::tensor},
    {"context communication", &planner::StepTime::context},
    {"expert communication", &planner::StepTime::exchange},
    {"data communication", &planner::StepTime::data},
    {"pipeline", &planner::StepTime::pipeline},
    {"host", &planner::StepTime::host},
    {"local copies", &planner::StepTime::local},
    {"update", &planner::StepTime::update}};

std::string describe(const planner::Parallelism &config) {
  std::string choices = choicesText(config);
  return meshText(config) + ", " + batchText(config) +
         (choices.empty() ? "" : ", " + choices);
}

/// Solves one candidate of the outcome's problem.
class Pricing {
public:
  explicit Pricing(const PlanOutcome &o)
      : problem(*o.problem), outcome(o), machine(o.problem->machine) {}

  std::optional<PlannedCandidate> solve(const planner::Parallelism &config,
                                        const planner::Machine &on) {
    planner::StageCache cache;
    Rejection ignored;
    return planner::solveCandidate(
        planner::withBatch(problem.graph, config.microBatch * config.dp),
        problem.options, on, config, {kNever, 0}, cache, ignored);
  }

  // Returns the cost of the memory limit: the same candidate is solved without
  // it.
  std::string chosen() {
    const PlannedCandidate &best = *outcome.best();
    planner::Machine endless = machine;
    endless.device.memory = {1e300};
    std::string text = fmt::format("chosen: {}: {}, ", describe(best.config),
                                   timeText(best.time.step));
    const Term *most =
        std::ranges::max_element(kTerms, {}, [&](const Term &term) {
          return (best.time.*term.time).value;
        });
    text += fmt::format("{} of it {}",
                        percentText(best.time.*most->time / best.time.step),
                        most->name);
    std::optional<PlannedCandidate> free = solve(best.config, endless);
    if (!free)
      return text;
    if (free->time.step.value >= best.time.step.value * (1 - 1e-9))
      return text + fmt::format("; the memory limit costs nothing ({} of {} "
                                "GiB used)",
                                gibText(best.memory.total()),
                                gibText(best.memory.limit));
    return text + fmt::format("; with {} GiB it could take {}",
                              gibText(free->memory.total()),
                              timeText(free->time.step));
  }

  std::string other(const PlannedCandidate &plan) const {
    const PlannedCandidate &best = *outcome.best();
    return fmt::format("{}: {}: {}", describe(plan.config),
                       slowdownText(plan, best), differencesText(plan, best));
  }

  std::string rejected(const RejectedMesh &mesh) {
    const Rejection &nearest = *mesh.nearest;
    std::string name = nearest.config.microBatch > 0 ? describe(nearest.config)
                                                     : meshText(nearest.config);
    if (nearest.reason == Rejection::Reason::divisor ||
        nearest.reason == Rejection::Reason::pins ||
        nearest.reason == Rejection::Reason::host ||
        nearest.config.microBatch == 0)
      return name + ": " + reasonText(mesh, outcome);
    std::optional<PlannedCandidate> plan = solve(nearest.config, machine);
    if (!plan)
      return name + ": " + reasonText(mesh, outcome);
    if (!plan->fits && plan->memory.total() <= plan->memory.limit)
      return fmt::format("{}: needs {} of {} GiB of the host's", name,
                         gibText(plan->memory.host),
                         gibText(plan->memory.hostLimit));
    if (!plan->fits)
      return name + ": needs " + shortageText(plan->memory);
    const PlannedCandidate &best = *outcome.best();
    std::string text = name + ": ";
    if (nearest.bound.value > best.time.step.value)
      text += fmt::format("at least {:+.1f} %, ",
                          100 * (nearest.bound / best.time.step - 1));
    return text + fmt::format("as it stands {:+.1f} %: {}",
                              100 * (plan->time.step / best.time.step - 1),
                              differencesText(*plan, best));
  }

private:
  const Problem &problem;
  const PlanOutcome &outcome;
  const planner::Machine &machine;
};

} // namespace

std::string differencesText(const PlannedCandidate &plan,
                            const PlannedCandidate &best) {
  struct Difference {
    const char *name;
    double seconds;
  };
  std::vector<Difference> differences;
  double most = 0;
  for (const Term &term : kTerms) {
    differences.push_back(
        {term.name, (plan.time.*term.time - best.time.*term.time).value});
    most = std::max(most, std::abs(differences.back().seconds));
  }
  std::ranges::stable_sort(differences, {}, [](const Difference &one) {
    return -std::abs(one.seconds);
  });
  constexpr double kMatters = 0.1; // share of the largest difference
  std::string text;
  for (const Difference &one : differences)
    if (one.seconds != 0 && std::abs(one.seconds) >= kMatters * most)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", one.name,
                          one.seconds < 0 ? '-' : '+',
                          timeText({std::abs(one.seconds)}));
  return text.empty() ? "takes the same" : text;
}

std::string shortageText(const planner::MemoryUse &memory) {
  struct Class {
    const char *name;
    planner::Bytes bytes;
  };
  Class classes[] = {
      {"parameters", memory.parameters}, {"gradients", memory.gradients},
      {"optimizer", memory.optimizer},   {"activations", memory.activations},
      {"workspace", memory.workspace},   {"spare", memory.spare},
      {"reserved", memory.reserved}};
  std::ranges::stable_sort(classes, [](const Class &a, const Class &b) {
    return a.bytes > b.bytes;
  });
  std::string text = fmt::format("{} of {} GiB: ", gibText(memory.total()),
                                 gibText(memory.limit));
  constexpr int kNamed = 3;
  for (int i = 0; i < kNamed; ++i)
    text += fmt::format("{}{} {}", i > 0 ? ", " : "", classes[i].name,
                        gibText(classes[i].bytes));
  return text;
}

std::vector<std::string> explanationsOf(const PlanOutcome &outcome) {
  constexpr std::size_t kMostMeshes = 32;
  Pricing pricing(outcome);
  std::vector<std::string> lines = {pricing.chosen()};
  for (std::size_t i = 1; i < outcome.result.plans.size(); ++i)
    lines.push_back(pricing.other(outcome.result.plans[i]));
  std::vector<RejectedMesh> meshes = rejectedMeshes(outcome);
  for (std::size_t i = 0; i < std::min(meshes.size(), kMostMeshes); ++i)
    lines.push_back(pricing.rejected(meshes[i]));
  if (meshes.size() > kMostMeshes)
    lines.push_back(fmt::format("{} more meshes, none nearer to a plan",
                                meshes.size() - kMostMeshes));
  return lines;
}

} // namespace mtplan::tools
