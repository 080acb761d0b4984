//===- validated_terms.cpp - Terms that no published run validates --------===//

#include "tools/report/validated_terms.h"

#include <fmt/format.h>

#include "planner/search/given_plan.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;
using planner::ScheduleKind;

namespace {

/// A term that the published runs of docs/accuracy/throughput.csv lack. The
/// runs have 1f1b and interleaved pipelines, tensor and context ranks, ZeRO 1
/// and 3, and all kinds of recomputation; none has experts, offloading, tiles
/// or another schedule.
struct Gap {
  const char *name, *without;
  /// Seconds of the step that the term adds; null if it adds none of its own.
  planner::Seconds planner::StepTime::*time;
  /// A schedule without validation is compared with 1f1b.
  ScheduleKind schedule;
};
constexpr Gap kGaps[] = {
    {"the zero-bubble schedule", "as 1f1b", nullptr, ScheduleKind::zeroBubble},
    {"the gpipe schedule", "as 1f1b", nullptr, ScheduleKind::gpipe},
    {"the exchange between experts",
     "without it",
     &planner::StepTime::exchange,
     {}},
    {"offload to the host", "without it", &planner::StepTime::host, {}}};

planner::Seconds stepOf(const Problem &problem, const PlannedCandidate &plan,
                        const planner::Parallelism &config) {
  return planner::priceGiven(
             planner::withBatch(problem.graph, config.microBatch * config.dp),
             problem.options, problem.machine, config, plan.parts)
      .time.step;
}

} // namespace

Unvalidated unvalidatedOf(const Problem &problem,
                          const PlannedCandidate &plan) {
  Unvalidated found;
  found.step = plan.time.step;
  for (const Gap &gap : kGaps) {
    planner::Seconds less;
    if (gap.time) {
      less = plan.time.*gap.time;
      if (less == planner::Seconds{})
        continue;
    } else {
      if (plan.config.pp == 1 || plan.config.schedule != gap.schedule)
        continue;
      planner::Parallelism config = plan.config;
      config.schedule = ScheduleKind::oneForwardOneBackward;
      less = plan.time.step - stepOf(problem, plan, config);
    }
    found.terms.push_back({gap.name, gap.without, plan.time.step - less});
    found.step = found.step - less;
  }
  if (plan.config.tiles > 1) {
    planner::Parallelism config = plan.config;
    config.tiles = 1;
    planner::Seconds step = stepOf(problem, plan, config);
    found.terms.push_back({"weights in tiles", "at once", step});
    found.step = found.step - (plan.time.step - step);
  }
  return found;
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
  text = "leans on " + text + ", which no published run has";
  if (found.terms.size() > 1)
    text += "; without all of them " + timeText(found.step);
  return text;
}

} // namespace mtplan::tools
