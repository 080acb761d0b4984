//===- predicted_step.cpp - Predicted step of a plan, for mtrun -----------===//

#include "tools/driver/predicted_step.h"

#include <algorithm>
#include <map>

#include "planner/integers.h"
#include "planner/search/given_plan.h"
#include "planner/search/price/phase_times.h"
#include "runtime/plan/instruction_class.h"
#include "tools/exchange/chrome_trace.h"

namespace mtplan::tools {

using planner::at;

namespace {

using Classes = std::map<std::string, double>; ///< seconds

// Returns the time per step of a stage's own instructions, by class. Messages
// and waits are not included.
Classes classesOfStage(const planner::ModelGraph &graph,
                       const planner::PlannedCandidate &plan,
                       const planner::Setting &setting, int stage) {
  planner::Setting here = setting;
  here.recomputeShare = planner::recomputeShareOf(plan.config, stage);
  const auto batches = static_cast<double>(here.microBatches);
  Classes classes;
  std::vector<bool> paid(graph.parameters.size(), false);
  std::vector<planner::SegmentPlan> runs;
  for (std::size_t part = at(stage); part < plan.parts.size();
       part += at(plan.config.pp))
    for (const planner::SegmentPlan &run : plan.parts[part]) {
      for (const auto &[kind, time] : planner::kindTimesOf(graph, run, here))
        classes[std::string(runtime::classOfKernel(kind))] +=
            time.value * run.count * batches;
      const planner::PhaseTimes times =
          planner::phaseTimesOf(graph, run, here, paid);
      classes[runtime::kCopies] +=
          (times.forward.local + times.backward.local).value * run.count *
              batches +
          (times.host.down + times.host.up).value * run.count;
      classes[runtime::kGradientNorm] += times.squares.value * run.count;
      classes[runtime::kOptimizer] +=
          (times.update - times.squares + times.host.update).value * run.count;
      runs.push_back(run);
    }
  for (const planner::LedgerEntry &entry : planner::ledgerOf(graph, runs, here))
    classes[runtime::classOfGroup(here.mesh.axes[at(entry.axis)].name)] +=
        entry.time.value * static_cast<double>(entry.perStep);
  return classes;
}

} // namespace

Prediction predictionOf(const Problem &problem,
                        const planner::PlannedCandidate &candidate) {
  const planner::Parallelism &config = candidate.config;
  const planner::ModelGraph graph =
      planner::withBatch(problem.graph, config.microBatch * config.dp);
  const planner::Setting setting =
      planner::settingOf(problem.options, problem.machine, config);
  const planner::StepProblem step = planner::stepProblemOf(
      graph, candidate.parts, setting, config, problem.options.overlaps);
  const planner::StepResult result =
      planner::simulateStep(step, planner::scheduleOf(step.shape));

  Prediction prediction;
  prediction.step = result.step.value;
  Classes sums;
  for (int stage = 0; stage < config.pp; ++stage)
    for (const auto &[name, seconds] :
         classesOfStage(graph, candidate, setting, stage))
      sums[name] += seconds / config.pp;
  if (step.clipsGradients)
    sums[runtime::kGradientNorm] += step.gradientNorm.value;
  if (config.pp > 1)
    sums[runtime::classOfGroup("pp")] += step.tied.value * 2.0 / config.pp;
  double rest = prediction.step;
  for (const auto &[name, seconds] : sums)
    rest -= seconds;
  if (config.pp > 1)
    sums[runtime::kMessages] = std::max(0.0, rest);
  prediction.classes.assign(sums.begin(), sums.end());

  const Trace trace = traceOf(result);
  for (const TraceLabel &label : trace.labels)
    if (label.thread != TraceLabel::kWholeProcess)
      prediction.streams.push_back({label.process, label.thread, label.name});
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent &event = trace.events[i];
    prediction.tasks.push_back(
        {event.process, event.thread, event.start, event.duration,
         event.category, result.tasks[i].microBatch, result.tasks[i].segment});
  }
  return prediction;
}

} // namespace mtplan::tools
