//===- objective.cpp - Objectives beside the step time --------------------===//

#include "tools/driver/objective.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "tools/driver/limits.h"
#include "tools/driver/parallelism_text.h"
#include "tools/driver/rejections.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Bytes;

namespace {

constexpr int kMostGpus = 16384; ///< unless --gpus says otherwise

// Returns, in one line, why an outcome has no plan.
std::string failureOf(const PlanOutcome &outcome) {
  const auto &nearest = outcome.result.nearest;
  if (nearest && nearest->fits)
    return fmt::format("the fastest plan found takes {}: {}",
                       timeText(nearest->time.step), meshText(nearest->config));
  std::vector<RejectedMesh> meshes = rejectedMeshes(outcome);
  if (meshes.empty())
    return "no way to share them out is legal";
  return meshText(meshes.front().nearest->config) + ": " +
         reasonText(meshes.front(), outcome);
}

class FewestGpus {
public:
  FewestGpus(const PlanRequest &asked, PlanOutcome &into)
      : request(asked), outcome(into), problem(*into.problem) {}

  void run() {
    int most = request.gpus ? static_cast<int>(*request.gpus) : kMostGpus;
    int least = leastByRate();
    for (int gpus : gpuCounts(problem.machine, most)) {
      if (gpus < least) {
        skipped = gpus;
        continue;
      }
      if (skipped > 0)
        note(skipped,
             fmt::format("and fewer: the products alone take longer at {} "
                         "TFLOP/s each",
                         peakText()));
      skipped = 0;
      problem.options.devices = gpus;
      std::vector<std::string> illegal;
      checkLimits(problem.options, &problem.graph, illegal);
      if (!illegal.empty()) {
        note(gpus, illegal.front());
        continue;
      }
      searchProblem(outcome);
      if (outcome.best())
        return;
      note(gpus, failureOf(outcome));
    }
    if (skipped > 0)
      note(skipped, "and fewer: the products alone take longer");
  }

private:
  // Fewer GPUs cannot do the model's products in time even at peak rate.
  int leastByRate() const {
    auto peak = problem.machine.device.peak(problem.options.precision);
    if (!request.maxStepTime || !peak)
      return 1;
    // The flops are of one micro-batch with one sample.
    double flops = planner::withBatch(problem.graph, 1).modelFlops.value *
                   static_cast<double>(problem.options.globalBatch);
    return static_cast<int>(
        std::ceil(flops / (peak->value * request.maxStepTime->value) - 1e-9));
  }

  std::string peakText() const {
    auto peak = problem.machine.device.peak(problem.options.precision);
    return fmt::format("{:.0f}", peak ? peak->value / 1e12 : 0.0);
  }

  void note(int gpus, const std::string &why) {
    outcome.attempts.push_back({std::to_string(gpus), why});
  }

  const PlanRequest &request;
  PlanOutcome &outcome;
  Problem &problem;
  int skipped = 0;
};

class LeastMemory {
public:
  explicit LeastMemory(PlanOutcome &into)
      : outcome(into), problem(*into.problem),
        whole(into.problem->machine.device.memory) {}

  // Bisects the memory limit between one that a plan fits and one without a
  // plan, then takes the fastest plan within the smallest limit.
  void run() {
    constexpr double kClose = 16.0 * 1024 * 1024;
    searchProblem(outcome);
    if (!outcome.best())
      return;
    Bytes fits = outcome.best()->memory.total();
    Bytes fails = problem.machine.device.reserved;
    problem.options.stop = [] { return true; };
    while ((fits - fails).value > kClose) {
      Bytes between = (fits + fails) / 2.0;
      PlanOutcome tried = attempt(between);
      if (tried.result.plans.empty()) {
        fails = between;
        outcome.attempts.push_back(
            {preciseGibText(between), "no plan was found"});
      } else {
        fits = tried.result.plans.front().memory.total();
      }
      outcome.problem = std::move(tried.problem);
    }
    problem.options.stop = nullptr;
    problem.machine.device.memory = fits * (1 + 1e-12);
    searchProblem(outcome);
    problem.machine.device.memory = whole;
    for (planner::PlannedCandidate &plan : outcome.result.plans)
      plan.memory.limit = whole;
  }

private:
  PlanOutcome attempt(Bytes limit) {
    PlanOutcome tried;
    tried.problem = std::move(outcome.problem);
    problem.machine.device.memory = limit;
    searchProblem(tried);
    return tried;
  }

  PlanOutcome &outcome;
  Problem &problem; ///< owned by the outcome
  Bytes whole;
};

} // namespace

std::vector<int> gpuCounts(const planner::Machine &machine, int most) {
  std::vector<int> counts;
  int node = machine.devicesPerNode;
  for (int gpus = 1; gpus < std::min(node, most + 1); ++gpus)
    if (node % gpus == 0)
      counts.push_back(gpus);
  for (int nodes = 1; nodes * node <= most; ++nodes)
    counts.push_back(nodes * node);
  return counts;
}

PlanOutcome planFor(const PlanRequest &request,
                    std::vector<std::string> errors) {
  if (request.objective == Objective::stepTime)
    return plan(request, std::move(errors));
  PlanOutcome outcome;
  outcome.asked = request;
  outcome.errors = std::move(errors);
  PlanRequest built = request;
  // The problem can be built for any number of GPUs.
  if (request.objective == Objective::gpus)
    built.gpus.reset();
  outcome.problem = buildProblem(built, outcome.errors);
  if (!outcome.problem)
    return outcome;
  if (request.objective == Objective::gpus)
    FewestGpus(request, outcome).run();
  else
    LeastMemory(outcome).run();
  finishOutcome(outcome);
  return outcome;
}

} // namespace mtplan::tools
