//===- validated_terms.cpp - What no published run vouches for ------------===//

#include "tools/validated_terms.h"

#include <fmt/format.h>

#include "planner/search/given_plan.h"
#include "tools/units_text.h"

namespace mtplan::tools {

using planner::PlannedCandidate;
using planner::ScheduleKind;

namespace {

/// What the published runs of docs/accuracy/throughput.csv lack. They have 1f1b
/// and interleaved pipelines, tensor and context ranks, ZeRO 1 and 3, all kinds
/// of recomputation; none has experts, offload, tiles or another schedule.
struct Gap {
  const char *name, *without;
  /// Seconds of the step that are this term's, where it adds to the rest.
  planner::Seconds planner::StepTime::*time;
  /// A schedule that is priced as 1f1b instead.
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
                        const planner::Parallelism &how) {
  return planner::priceGiven(
             planner::withBatch(problem.graph, how.microBatch * how.dp),
             problem.options, problem.machine, how, plan.parts)
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
      if (plan.how.pp == 1 || plan.how.schedule != gap.schedule)
        continue;
      planner::Parallelism how = plan.how;
      how.schedule = ScheduleKind::oneForwardOneBackward;
      less = plan.time.step - stepOf(problem, plan, how);
    }
    found.terms.push_back({gap.name, gap.without, plan.time.step - less});
    found.step = found.step - less;
  }
  if (plan.how.tiles > 1) {
    planner::Parallelism how = plan.how;
    how.tiles = 1;
    planner::Seconds step = stepOf(problem, plan, how);
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
