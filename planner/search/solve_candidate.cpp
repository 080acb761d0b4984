//===- solve_candidate.cpp - One mesh and micro-batch, exactly ------------===//

#include <algorithm>
#include <limits>

#include "planner/search/search.h"
#include "planner/solve/chain_solver.h"

namespace mtplan::planner {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The first segment that reads a shared parameter pays for it.
std::vector<SegmentProblem> buildProblems(const ModelGraph &graph,
                                          const Setting &setting) {
  std::vector<bool> paid(graph.parameters.size(), false);
  std::vector<SegmentProblem> problems;
  for (std::size_t s = 0; s < graph.segments.size(); ++s) {
    std::vector<bool> owner(paid.size());
    for (std::size_t p = 0; p < paid.size(); ++p)
      owner[p] = !paid[p];
    problems.push_back(
        buildSegmentProblem(graph, static_cast<int>(s), setting, owner));
    for (std::size_t p = 0; p < paid.size(); ++p)
      if (problems.back().parameterVariables[p] >= 0)
        paid[p] = true;
  }
  return problems;
}

bool someDomainIsEmpty(const std::vector<SegmentProblem> &problems) {
  for (const SegmentProblem &problem : problems)
    for (int domain : problem.link.problem.domains)
      if (domain == 0)
        return true;
  return false;
}

std::vector<SegmentPlan> readPlans(const ModelGraph &graph,
                                   const std::vector<SegmentProblem> &problems,
                                   const std::vector<Run> &runs) {
  std::vector<SegmentPlan> plans;
  int link = -1, first = 0;
  for (const Run &run : runs) {
    if (run.link != link)
      first = 0;
    link = run.link;
    SegmentPlan plan = readAssignment(
        graph, link, problems[static_cast<std::size_t>(link)], run.assignment);
    plan.first += first;
    plan.count = run.count;
    first += run.count;
    plans.push_back(std::move(plan));
  }
  return plans;
}

} // namespace

std::optional<PlannedCandidate> solveCandidate(const ModelGraph &graph,
                                               const Setting &setting,
                                               std::int64_t microBatch,
                                               Seconds stopAbove,
                                               Rejection &rejection) {
  std::vector<SegmentProblem> problems = buildProblems(graph, setting);
  if (someDomainIsEmpty(problems)) {
    rejection.reason = Rejection::Reason::pins;
    return std::nullopt;
  }
  ChainProblem chain;
  for (const SegmentProblem &problem : problems)
    chain.links.push_back(problem.link);
  const Device &device = setting.machine->device;
  const double room = (device.memory - device.reserved).value;

  PlannedCandidate candidate;
  candidate.dp = setting.mesh.axes[kDataAxis].size;
  candidate.tp = setting.mesh.axes[kTensorAxis].size;
  candidate.microBatch = microBatch;
  candidate.microBatches = setting.microBatches;

  // What the solver limits adds up; the workspace does not. Solve without it
  // first, which bounds every plan from below, then leave room for the
  // workspace of what was found until it fits.
  ChainSolver solver(chain);
  double workspace = 0.0;
  constexpr int kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    chain.memoryLimit = room - workspace;
    ChainSolution solution = solver.solve(chain, {stopAbove.value});
    if (round == 0)
      candidate.lowerBound = {solution.lowerBound};
    if (solution.abandoned) {
      rejection.reason = Rejection::Reason::bound;
      rejection.bound = candidate.lowerBound;
      return std::nullopt;
    }
    if (solution.runs.empty()) {
      rejection.reason = Rejection::Reason::pins;
      return std::nullopt;
    }
    candidate.plans = readPlans(graph, problems, solution.runs);
    candidate.memory = memoryOf(graph, candidate.plans, setting);
    candidate.time = stepTimeOf(graph, candidate.plans, setting);
    candidate.fits = candidate.memory.total() <= candidate.memory.limit;
    if (candidate.fits || !solution.feasible) {
      candidate.optimal =
          candidate.fits &&
          candidate.time.step.value <= candidate.lowerBound.value * (1 + 1e-9);
      if (!candidate.fits) {
        rejection.reason = Rejection::Reason::memory;
        rejection.needed = candidate.memory.total();
        // Too large without any workspace: nothing there fits, at any speed.
        rejection.bound = round == 0 ? Seconds{kNever} : candidate.lowerBound;
      }
      return candidate;
    }
    workspace = std::max(workspace, candidate.memory.workspace.value);
  }
  rejection.reason = Rejection::Reason::memory;
  rejection.needed = candidate.memory.total();
  rejection.bound = candidate.lowerBound;
  return candidate;
}

} // namespace mtplan::planner
