//===- trace_text.cpp - The best plan's step for Perfetto -----------------===//

#include "tools/report/trace_text.h"

#include "planner/search/given_plan.h"
#include "planner/simulate/schedule.h"
#include "tools/exchange/step_trace.h"

namespace mtplan::tools {

std::string traceTextOf(const PlanOutcome &outcome,
                        std::vector<std::string> &errors) {
  const Problem &problem = *outcome.problem;
  const planner::PlannedCandidate &best = *outcome.best();
  planner::Setting setting =
      planner::settingOf(problem.options, problem.machine, best.config);
  planner::StepProblem step = planner::stepProblemOf(
      planner::withBatch(problem.graph,
                         best.config.microBatch * best.config.dp),
      best.parts, setting, best.config, problem.options.overlaps);
  return writeChromeTrace(
      traceOf(planner::simulateStep(step, planner::scheduleOf(step.shape))),
      errors);
}

} // namespace mtplan::tools
