//===- objective.cpp - The least of something -----------------------------===//

#include "tools/objective.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "tools/facts.h"
#include "tools/how_text.h"
#include "tools/limits.h"
#include "tools/units_text.h"

namespace mtplan::tools {

using planner::Bytes;

namespace {

constexpr int kMostGpus = 16384; ///< unless --gpus says otherwise

// What lies close together is told apart.
std::string preciseGib(Bytes bytes) {
  return fmt::format("{:.2f} GiB", bytes.value / (1024.0 * 1024.0 * 1024.0));
}

// Why an outcome has no plan, in one line.
std::string failureOf(const PlanOutcome &outcome) {
  const auto &nearest = outcome.result.nearest;
  if (nearest && nearest->fits)
    return fmt::format("the fastest plan found takes {}: {}",
                       timeText(nearest->time.step), meshText(nearest->how));
  std::vector<RejectedMesh> meshes = rejectedMeshes(outcome);
  if (meshes.empty())
    return "no way to share them out is legal";
  return meshText(meshes.front().nearest->how) + ": " +
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
  // No fewer can do the model's products in time, whatever they do.
  int leastByRate() const {
    auto peak = problem.machine.device.peak(problem.options.precision);
    if (!request.maxStepTime || !peak)
      return 1;
    // Of one micro-batch of one sample.
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

  // Halves what lies between a limit that something fits and one that nothing
  // was found for; then the fastest plan within the least.
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
        outcome.attempts.push_back({preciseGib(between), "no plan was found"});
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
  Problem &problem; ///< the outcome's
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
  // Any number of GPUs will do to build the problem for.
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
               ? fmt::format("GPUs  {} are the fewest{}, of divisors of a "
                             "node and whole nodes\n",
                             problem.options.devices, within)
               : fmt::format("GPUs  no number tried is enough{}\n", within);
  else if (outcome.best())
    text = fmt::format("Least memory  {} of a GPU{}\n",
                       preciseGib(outcome.best()->memory.total()), within);
  else
    return "";
  // What came nearest was tried last; of halvings nothing else matters.
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

} // namespace mtplan::tools
