//===- solve_candidate.cpp - One mesh and micro-batch, exactly ------------===//

#include <algorithm>
#include <limits>

#include "planner/search/search.h"

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

// Bytes of one rank's piece of what `use` touches.
double pieceOf(const Use &use, const Strategy &strategy,
               const std::vector<Tensor> &tensors, const Mesh &mesh) {
  const Tensor &tensor = tensors[static_cast<std::size_t>(use.tensor)];
  double piece = tensor.elementBytes;
  for (std::int64_t size : tensor.shape)
    piece *= static_cast<double>(size);
  for (int factor : use.factors)
    for (std::size_t a = 0; factor >= 0 && a < strategy.axes.size(); ++a)
      if (strategy.axes[a] == factor)
        piece /= mesh.axes[a].size;
  return piece;
}

// Bytes of all that `op` touches on one rank where it is split best, but for
// inputs, parameters and saved values, which have their own place.
double leastWorkingSet(const Op &op, const std::vector<Strategy> &strategies,
                       const std::vector<Tensor> &tensors,
                       const std::vector<int> &savedVariables,
                       const Mesh &mesh) {
  double least = kNever;
  for (const Strategy &strategy : strategies) {
    double bytes = 0.0;
    for (const std::vector<Use> *uses : {&op.operands, &op.results})
      for (const Use &use : *uses) {
        auto index = static_cast<std::size_t>(use.tensor);
        if (tensors[index].kind == TensorKind::activation &&
            savedVariables[index] < 0)
          bytes += pieceOf(use, strategy, tensors, mesh);
      }
    least = std::min(least, bytes);
  }
  return least;
}

// The least any plan keeps of a segment's inputs: of each the largest piece
// that some reader needs, where that reader is split best.
double leastInputs(const SegmentGraph &segment, const SegmentProblem &problem,
                   const Mesh &mesh) {
  std::vector<double> least(segment.tensors.size(), 0.0);
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    for (const Use &use : segment.ops[o].operands) {
      auto index = static_cast<std::size_t>(use.tensor);
      if (segment.tensors[index].kind != TensorKind::input)
        continue;
      double smallest = kNever;
      for (const Strategy &strategy : problem.strategies[o])
        smallest =
            std::min(smallest, pieceOf(use, strategy, segment.tensors, mesh));
      least[index] = std::max(least[index], smallest);
    }
  double bytes = 0.0;
  for (double one : least)
    bytes += one;
  return bytes;
}

// Room for what lives shorter than a phase: twice what the hungriest operator
// touches where it is split best, one set computing and one arriving. A number
// of the candidate, not of its plans, so that what is limited adds up.
double workspaceReserve(const ModelGraph &graph,
                        const std::vector<SegmentProblem> &problems,
                        const Mesh &mesh) {
  double most = 0.0;
  for (std::size_t s = 0; s < problems.size(); ++s)
    for (std::size_t o = 0; o < graph.segments[s].ops.size(); ++o)
      most = std::max(most, leastWorkingSet(graph.segments[s].ops[o],
                                            problems[s].strategies[o],
                                            graph.segments[s].tensors,
                                            problems[s].savedVariables, mesh));
  double inputs = 0.0;
  for (std::size_t s = 0; s < problems.size(); ++s)
    inputs += leastInputs(graph.segments[s], problems[s], mesh);
  return 2.0 * most + inputs;
}

} // namespace

std::optional<PlannedCandidate>
solveCandidate(const ModelGraph &graph, const Setting &setting,
               std::int64_t microBatch, SolveLimits limits,
               SolverCache &solvers, Rejection &rejection) {
  std::vector<SegmentProblem> problems = buildProblems(graph, setting);
  if (someDomainIsEmpty(problems)) {
    rejection.reason = Rejection::Reason::pins;
    return std::nullopt;
  }
  ChainProblem chain;
  for (SegmentProblem &problem : problems)
    chain.links.push_back(problem.link);
  const Device &device = setting.machine->device;
  const double room = (device.memory - device.reserved).value;

  PlannedCandidate candidate;
  candidate.dp = setting.mesh.axes[kDataAxis].size;
  candidate.tp = setting.mesh.axes[kTensorAxis].size;
  candidate.microBatch = microBatch;
  candidate.microBatches = setting.microBatches;

  // The reserve almost always covers what the plan's values need at once. Where
  // it does not, room is made for what was found, and the first solution's
  // bound still bounds every plan.
  ChainSolver &solver = solvers.solverOf(chain);
  const double reserve = workspaceReserve(graph, problems, setting.mesh);
  double workspace = reserve;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    chain.memoryLimit = room - workspace;
    ChainSolution solution = solver.solve(chain, limits);
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
    double alive = candidate.memory.workspace.value;
    candidate.memory.workspace.value = std::max(alive, reserve);
    candidate.time = stepTimeOf(graph, candidate.plans, setting);
    candidate.fits =
        solution.feasible && candidate.memory.total().value <=
                                 candidate.memory.limit.value * (1 + 1e-12);
    if (candidate.fits || !solution.feasible) {
      candidate.optimal =
          candidate.fits &&
          candidate.time.step.value <= candidate.lowerBound.value * (1 + 1e-9);
      if (!candidate.fits) {
        rejection.reason = Rejection::Reason::memory;
        rejection.needed = candidate.memory.total();
        // Too large at the first try: nothing there fits, at any speed.
        rejection.bound = round == 0 ? Seconds{kNever} : candidate.lowerBound;
      }
      return candidate;
    }
    workspace = std::max(workspace, alive);
  }
  rejection.reason = Rejection::Reason::memory;
  rejection.needed = candidate.memory.total();
  rejection.bound = candidate.lowerBound;
  return candidate;
}

} // namespace mtplan::planner
