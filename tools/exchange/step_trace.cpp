//===- step_trace.cpp - A simulated step as a timeline --------------------===//

#include "tools/exchange/step_trace.h"

#include <map>
#include <set>

#include <fmt/format.h>

namespace mtplan::tools {

using planner::StepTask;

namespace {

// Returns the name of each stream: its roles, or "compute".
std::map<std::pair<int, int>, std::string>
streamNames(const planner::StepResult &result) {
  std::map<std::pair<int, int>, std::set<int>> roles;
  std::map<std::pair<int, int>, std::string> names;
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    const StepTask &task = result.tasks[i];
    std::pair stream(task.stage, result.graph.streamOf(static_cast<int>(i)));
    if (task.onCompute)
      names[stream] = "compute";
    roles[stream].insert(static_cast<int>(task.role));
  }
  for (const auto &[stream, has] : roles) {
    std::string &name = names[stream];
    if (!name.empty())
      continue;
    for (int role : has)
      name += (name.empty() ? "" : ", ") +
              std::string(nameOf(planner::StepRole(role)));
  }
  return names;
}

} // namespace

Trace traceOf(const planner::StepResult &result) {
  Trace trace;
  std::set<int> stages;
  for (const auto &[stream, name] : streamNames(result)) {
    if (stages.insert(stream.first).second)
      trace.labels.push_back({stream.first, TraceLabel::kWholeProcess,
                              fmt::format("stage {}", stream.first)});
    trace.labels.push_back({stream.first, stream.second, name});
  }
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    const StepTask &task = result.tasks[i];
    TraceEvent event;
    event.process = task.stage;
    event.thread = result.graph.streamOf(static_cast<int>(i));
    event.name = nameOf(task.role);
    if (task.microBatch >= 0)
      event.name += fmt::format(" {}", task.microBatch);
    event.category = nameOf(task.role);
    event.start = result.timeline.start[i].value;
    event.duration =
        result.timeline.finish[i].value - result.timeline.start[i].value;
    auto say = [&](const char *key, int value) {
      if (value >= 0)
        event.args.emplace_back(key, std::int64_t{value});
    };
    say("micro_batch", task.microBatch);
    say("chunk", task.chunk);
    say("segment", task.segment);
    trace.events.push_back(std::move(event));
    for (int before : result.graph.dependenciesOf(static_cast<int>(i)))
      if (result.tasks[static_cast<std::size_t>(before)].stage != task.stage)
        trace.flows.push_back(
            {nameOf(result.tasks[static_cast<std::size_t>(before)].role),
             "stages", static_cast<std::size_t>(before), i});
  }
  return trace;
}

} // namespace mtplan::tools
