//===- search_problem.cpp - From a problem to its plans -------------------===//
//
// The search first leaves a share of each GPU's memory free, because the memory
// model does not cover fragmentation and unusually long batches. If no plan
// fits, plans may fill the memory. If still no plan fits, the optimizer's state
// may be on the host.
//
//===----------------------------------------------------------------------===//

#include <chrono>

#include "planner/search/solve_candidate.h"
#include "tools/driver/pipeline.h"

namespace mtplan::tools {

namespace {

// Solves the candidate that needs the least memory, to report its memory by
// class. The search itself does not solve candidates whose lower bound exceeds
// the device's memory.
void findNearest(const Problem &problem, planner::SearchResult &result) {
  const planner::Rejection *least = nullptr;
  for (const planner::Rejection &rejection : result.rejections)
    if (rejection.reason == planner::Rejection::Reason::memory &&
        (!least || std::pair(rejection.needed, rejection.config.microBatch) <
                       std::pair(least->needed, least->config.microBatch)))
      least = &rejection;
  if (!result.plans.empty() || result.nearest || !least)
    return;
  planner::StageCache solvers;
  planner::Rejection ignored;
  result.nearest = planner::solveCandidate(
      planner::withBatch(problem.graph,
                         least->config.microBatch * least->config.dp),
      problem.options, problem.machine, least->config, {}, solvers, ignored);
}

bool searchWithMargin(const Problem &problem, double keptFree,
                      planner::SearchResult &result) {
  planner::Machine machine = problem.machine;
  machine.device.memory = machine.device.memory * (1.0 - keptFree);
  result = planner::search(problem.graph, machine, problem.options);
  for (planner::PlannedCandidate &plan : result.plans)
    plan.memory.limit = problem.machine.device.memory;
  return !result.plans.empty();
}

void searchWithin(PlanOutcome &outcome) {
  Problem &problem = *outcome.problem;
  const PlanRequest &asked = outcome.asked;
  const bool keepsFree = asked.keptFree > 0.0 && !asked.memory &&
                         asked.objective != Objective::memory;
  outcome.keptFree = {};
  if (keepsFree && searchWithMargin(problem, asked.keptFree, outcome.result))
    outcome.keptFree = problem.machine.device.memory * asked.keptFree;
  else
    outcome.result =
        planner::search(problem.graph, problem.machine, problem.options);
}

// Searches with offload, and keeps the result only if a plan fits.
void searchWithOffload(PlanOutcome &outcome) {
  Problem &problem = *outcome.problem;
  planner::SearchResult without = std::move(outcome.result);
  const planner::Choices<planner::Offload> asked = problem.options.offload;
  problem.options.offload.only = {planner::Offload::optimizer};
  searchWithin(outcome);
  if (outcome.result.plans.empty()) {
    problem.options.offload = asked;
    outcome.result = std::move(without);
    return;
  }
  problem.notes.emplace_back(
      "nothing fits into the memory of the GPUs alone, so the optimizer's "
      "state is on the host; --offload none says what else would fit");
}

} // namespace

void searchProblem(PlanOutcome &outcome) {
  using Clock = std::chrono::steady_clock;
  Problem &problem = *outcome.problem;
  planner::SearchOptions &options = problem.options;
  if (outcome.asked.maxStepTime)
    options.atMost = *outcome.asked.maxStepTime;
  Clock::time_point start = Clock::now();
  if ((outcome.asked.budget || outcome.asked.poll) && !options.stop)
    options.stop = [start, budget = outcome.asked.budget,
                    poll = outcome.asked.poll] {
      if (poll)
        poll();
      return budget &&
             std::chrono::duration<double>(Clock::now() - start).count() >=
                 budget->value;
    };
  options.watch = outcome.asked.watch;
  searchWithin(outcome);
  const bool mayOffload =
      outcome.asked.offloadsIfNeeded &&
      !options.offload.allows(planner::Offload::optimizer) &&
      problem.machine.host && !outcome.asked.maxStepTime &&
      outcome.asked.objective == Objective::stepTime &&
      outcome.asked.importFile.empty();
  if (outcome.result.plans.empty() && mayOffload)
    searchWithOffload(outcome);
  outcome.searchSeconds +=
      std::chrono::duration<double>(Clock::now() - start).count();
  findNearest(problem, outcome.result);
}

} // namespace mtplan::tools
