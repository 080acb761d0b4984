//===- step_page.cpp - A simulated step on the page -----------------------===//

#include "tools/report/page/step_page.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace mtplan::tools {

using planner::StageUse;
using planner::StepRole;

namespace {

// Kinds that share a colour run on separate streams, or never side by side.
int colourOf(StepRole role) {
  switch (role) {
  case StepRole::forward:
    return 0;
  case StepRole::backward:
    return 1;
  case StepRole::weightGradient:
    return 2;
  case StepRole::sendForward:
  case StepRole::sendBackward:
    return 3;
  case StepRole::gather:
    return 5;
  case StepRole::reduce:
    return 7;
  case StepRole::tied:
  case StepRole::norm:
    return 4;
  case StepRole::update:
  case StepRole::hostUpdate:
    return 8;
  case StepRole::down:
  case StepRole::up:
    return 6;
  }
  return 0;
}

} // namespace

PageTimeline pageTimeline(const planner::StepProblem &problem,
                          const planner::StepResult &result) {
  PageTimeline timeline;
  timeline.end = result.step.value;
  timeline.stages = problem.shape.stages;
  for (int role = 0; role <= static_cast<int>(StepRole::up); ++role)
    timeline.kinds.push_back(
        {nameOf(StepRole(role)), colourOf(StepRole(role))});

  // Streams are ordered by stage, compute first, then by the simulator's order.
  std::map<std::tuple<int, bool, int>, PageStream> streams;
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    const planner::StepTask &task = result.tasks[i];
    PageStream &stream = streams[{task.stage, !task.onCompute,
                                  result.graph.streamOf(static_cast<int>(i))}];
    stream.stage = task.stage;
    stream.isCompute = task.onCompute;
    stream.tasks.push_back({result.timeline.start[i].value,
                            result.timeline.finish[i].value,
                            static_cast<int>(task.role), task.chunk,
                            task.microBatch, task.segment});
  }
  for (auto &[key, stream] : streams) {
    std::ranges::stable_sort(stream.tasks, {}, &PageTask::start);
    if (stream.isCompute) {
      stream.name = "compute";
    } else {
      // A communicator's stream may have several roles.
      std::vector<bool> has(timeline.kinds.size(), false);
      for (const PageTask &task : stream.tasks)
        has[static_cast<std::size_t>(task.kind)] = true;
      for (std::size_t kind = 0; kind < has.size(); ++kind)
        if (has[kind])
          stream.name +=
              (stream.name.empty() ? "" : ", ") + timeline.kinds[kind].name;
    }
    timeline.streams.push_back(std::move(stream));
  }
  return timeline;
}

PageBars pageStages(const planner::StepProblem &problem,
                    const planner::StepResult &result) {
  struct Term {
    const char *name, *meaning;
    int colour; ///< the colour in the timeline, if it is there
    planner::Seconds StageUse::*time;
  };
  static constexpr Term kTerms[] = {
      {"forward and backward",
       "Operators of all micro-batches, with the collectives that stand "
       "between two of them.",
       0, &StageUse::busy},
      {"bubble", "Waiting for other stages' work.", 6, &StageUse::bubble},
      {"messages", "Waiting for, or spent on, sends from stage to stage.", 3,
       &StageUse::exposedPointToPoint},
      {"parameters and gradients",
       "Gathers and reduces among replicas that nothing else runs beside.", 5,
       &StageUse::exposedData},
      {"synchronisation",
       "The tied embedding's gradient, and the norm of all gradients.", 4,
       &StageUse::exposedSync},
      {"host", "Waiting for what is offloaded to the host.", 2,
       &StageUse::exposedHost},
      {"update", "The optimizer, on the device.", 8, &StageUse::update},
  };
  PageBars bars;
  bars.noteName = problem.shape.chunks > 1 ? "in flight (chunk and micro-batch)"
                                           : "micro-batches in flight";
  for (const Term &term : kTerms)
    if (std::ranges::any_of(result.stages, [&](const StageUse &use) {
          return (use.*term.time).value > 0;
        }))
      bars.parts.push_back({term.name, term.meaning, term.colour});
  for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
    const StageUse &use = result.stages[stage];
    PageBar bar;
    bar.name = fmt::format("stage {}", stage);
    for (const Term &term : kTerms)
      if (std::ranges::find(bars.parts, std::string(term.name),
                            &PagePart::name) != bars.parts.end())
        bar.parts.push_back((use.*term.time).value);
    bar.note = std::to_string(use.inFlight.full);
    if (use.inFlight.weightOnly > 0)
      bar.note += fmt::format(" and {} for weights", use.inFlight.weightOnly);
    bars.bars.push_back(std::move(bar));
  }
  return bars;
}

} // namespace mtplan::tools
