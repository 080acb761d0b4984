//===- plan_parts.cpp - Parts of the page from the planner ----------------===//

#include "tools/report/page/plan_parts.h"

#include <algorithm>

#include <fmt/format.h>

namespace mtplan::tools {

using planner::MemoryUse;
using planner::StepRole;
using planner::StepTime;

PageBars pageStep(const StepTime &time) {
  struct Term {
    const char *name, *meaning;
    int colour; ///< the colour in the bars of the stages, if it is there
    planner::Seconds StepTime::*time;
  };
  static constexpr Term kTerms[] = {
      {"compute", "Operators, as the roofline of the device prices them.", 0,
       &StepTime::compute},
      {"tensor communication", "Collectives between operators, tensor axis.", 1,
       &StepTime::tensor},
      {"context communication", "The same, context axis.", 7,
       &StepTime::context},
      {"expert communication", "Samples exchanged for their experts.", 3,
       &StepTime::exchange},
      {"local copies", "Slices and masks.", 4, &StepTime::local},
      {"data communication",
       "Parameters and gradients among replicas, as far as nothing else runs "
       "meanwhile.",
       5, &StepTime::data},
      {"host", "Waiting for what is offloaded to the host.", 2,
       &StepTime::host},
      {"pipeline", "Waiting for other stages: bubble and messages.", 6,
       &StepTime::pipeline},
      {"update", "The optimizer's memory traffic.", 8, &StepTime::update},
  };
  PageBars bars;
  bars.bars.push_back({"step", {}, time.step.value, {}});
  for (const Term &term : kTerms)
    if ((time.*term.time).value != 0) {
      bars.parts.push_back({term.name, term.meaning, term.colour});
      bars.bars[0].parts.push_back((time.*term.time).value);
    }
  return bars;
}

PageBars pageMemory(const std::vector<MemoryUse> &stages) {
  struct Class {
    const char *name, *meaning;
    planner::Bytes MemoryUse::*bytes;
  };
  static constexpr Class kClasses[] = {
      {"parameters", "Weights, in the precision of the products.",
       &MemoryUse::parameters},
      {"gradients", "Accumulated over the step.", &MemoryUse::gradients},
      {"optimizer", "The optimizer's copy of the weights, and its moments.",
       &MemoryUse::optimizer},
      {"activations",
       "Kept from forward to backward, of all micro-batches in flight.",
       &MemoryUse::activations},
      {"workspace", "The most that is alive beside them within one segment.",
       &MemoryUse::workspace},
      {"spare", "Of the room kept for the workspace, what is left over.",
       &MemoryUse::spare},
      {"reserved", "Context, libraries, fragmentation.", &MemoryUse::reserved},
  };
  PageBars bars;
  for (const Class &one : kClasses)
    bars.parts.push_back({one.name, one.meaning});
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    PageBar bar;
    bar.name = fmt::format("stage {}", stage);
    for (const Class &one : kClasses)
      bar.parts.push_back((stages[stage].*one.bytes).value);
    bar.total = stages[stage].total().value;
    bars.bars.push_back(std::move(bar));
    bars.limit = stages[stage].limit.value;
  }
  return bars;
}

std::vector<PageTraffic>
pageTraffic(const std::vector<planner::LedgerEntry> &ledger,
            const planner::Mesh &mesh) {
  std::vector<PageTraffic> traffic;
  for (const planner::LedgerEntry &entry : ledger) {
    const std::string &axis =
        mesh.axes[static_cast<std::size_t>(entry.axis)].name;
    std::string phase = nameOf(entry.phase), kind = nameOf(entry.kind);
    auto same = std::ranges::find_if(traffic, [&](const PageTraffic &one) {
      return one.axis == axis && one.phase == phase && one.kind == kind;
    });
    if (same == traffic.end()) {
      traffic.push_back({axis, phase, kind});
      same = traffic.end() - 1;
    }
    auto times = static_cast<double>(entry.perStep);
    same->count += entry.perStep;
    same->bytes += entry.bytes.value * times;
    same->seconds += entry.time.value * times;
  }
  std::ranges::stable_sort(traffic, {}, &PageTraffic::axis);
  return traffic;
}

void addSends(std::vector<PageTraffic> &traffic,
              const planner::StepResult &result) {
  PageTraffic sends[] = {{"pp", "forward", "send", 0, kUnknown},
                         {"pp", "backward", "send", 0, kUnknown}};
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    StepRole role = result.tasks[i].role;
    if (role != StepRole::sendForward && role != StepRole::sendBackward)
      continue;
    PageTraffic &one = sends[role == StepRole::sendBackward];
    ++one.count;
    one.seconds += result.graph.durationOf(static_cast<int>(i)).value;
  }
  for (PageTraffic &one : sends)
    if (one.count > 0)
      traffic.push_back(std::move(one));
}

} // namespace mtplan::tools
