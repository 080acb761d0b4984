//===- step.cpp - One training step of all pipeline stages ----------------===//

#include "planner/simulate/step.h"

#include <cmath>

#include "planner/simulate/step_account.h"
#include "planner/simulate/step_graph.h"

namespace mtplan::planner {
namespace {

/// Collects sentences, each about one place of the problem.
class Complaints {
public:
  explicit Complaints(const StepProblem &theProblem) : problem(theProblem) {}

  void time(const std::string &place, const char *what, Seconds seconds) {
    if (!(std::isfinite(seconds.value) && seconds.value >= 0.0))
      errors.push_back(place + ": " + what + " takes " +
                       std::to_string(seconds.value) +
                       " s; it must be finite and at least 0");
  }
  void link(const std::string &place, const char *what, int link) {
    if (link < kNoLink || link >= int(problem.links.size()))
      errors.push_back(place + ": " + what + " is on link " +
                       std::to_string(link) + " of " +
                       std::to_string(problem.links.size()));
  }
  void count(const std::string &place, const char *what, int needed,
             std::size_t got) {
    if (std::size_t(needed) != got)
      errors.push_back(place + ": needs " + std::to_string(needed) + " " +
                       what + ", got " + std::to_string(got));
  }
  void slice(const std::string &place, const SliceTimes &slice) {
    if (slice.count < 0)
      errors.push_back(place + ": has " + std::to_string(slice.count) +
                       " segments; it must be at least 0");
    time(place, "forward", slice.forward);
    time(place, "backward", slice.backward);
    time(place, "the gradient of weights", slice.weightGradient);
    time(place, "gather", slice.gather);
    time(place, "reduce", slice.reduce);
    if (slice.weightGradient > slice.backward)
      errors.push_back(place + ": the gradient of weights takes " +
                       std::to_string(slice.weightGradient.value) +
                       " s of a backward of " +
                       std::to_string(slice.backward.value) + " s");
  }
  void chunk(const std::string &place, const ChunkTimes &chunk) {
    for (std::size_t i = 0; i < chunk.slices.size(); ++i)
      slice(place + ", slice " + std::to_string(i), chunk.slices[i]);
    time(place, "the send forward", chunk.sendForward);
    time(place, "the send backward", chunk.sendBackward);
    time(place, "bringing gradients to the host", chunk.down);
    time(place, "the host's update", chunk.hostUpdate);
    time(place, "bringing parameters back", chunk.up);
  }
  void stage(const std::string &place, const StageTimes &stage) {
    count(place, "chunks", problem.shape.chunks, stage.chunks.size());
    for (std::size_t i = 0; i < stage.chunks.size(); ++i)
      chunk(place + ", chunk " + std::to_string(i), stage.chunks[i]);
    time(place, "update", stage.update);
    link(place, "the send forward", stage.links.sendForward);
    link(place, "the send backward", stage.links.sendBackward);
    link(place, "data-parallel traffic", stage.links.data);
    link(place, "the host's traffic", stage.links.host);
  }

  const StepProblem &problem;
  std::vector<std::string> errors;
};

} // namespace

const char *nameOf(StepRole role) {
  switch (role) {
  case StepRole::forward:
    return "forward";
  case StepRole::backward:
    return "backward";
  case StepRole::weightGradient:
    return "weight gradient";
  case StepRole::sendForward:
    return "send forward";
  case StepRole::sendBackward:
    return "send backward";
  case StepRole::gather:
    return "gather";
  case StepRole::reduce:
    return "reduce";
  case StepRole::tied:
    return "tied embedding";
  case StepRole::norm:
    return "gradient norm";
  case StepRole::update:
    return "update";
  case StepRole::down:
    return "gradients down";
  case StepRole::hostUpdate:
    return "host update";
  case StepRole::up:
    return "parameters up";
  }
  return "";
}

std::vector<std::string> check(const StepProblem &problem) {
  Complaints complaints(problem);
  complaints.errors = check(problem.shape);
  complaints.count("step", "stages", problem.shape.stages,
                   problem.stages.size());
  for (std::size_t i = 0; i < problem.stages.size(); ++i)
    complaints.stage("stage " + std::to_string(i), problem.stages[i]);
  complaints.time("step", "the tied embedding", problem.tied);
  complaints.time("step", "the norm of gradients", problem.gradientNorm);
  complaints.link("step", "the tied embedding", problem.tiedLink);
  if (problem.prefetch < 0)
    complaints.errors.push_back("step: gathers " +
                                std::to_string(problem.prefetch) +
                                " segments ahead; it must be at least 0");
  return complaints.errors;
}

StepResult simulateStep(const StepProblem &problem, const Schedule &schedule) {
  StepGraph made = stepGraphOf(problem, schedule, true);
  StepResult result;
  result.graph = std::move(made.graph);
  result.tasks = std::move(made.tasks);
  result.messages = made.messages;
  result.timeline = timelineOf(result.graph);
  result.step = result.timeline.end;
  result.stages =
      accountOf(problem, result.graph, result.tasks, result.timeline);
  for (std::size_t stage = 0; stage < schedule.size(); ++stage)
    result.stages[stage].inFlight = inFlight(schedule[stage]);
  return result;
}

Seconds stepSeconds(const StepProblem &problem, const Schedule &schedule) {
  return timelineOf(stepGraphOf(problem, schedule, false).graph).end;
}

} // namespace mtplan::planner
