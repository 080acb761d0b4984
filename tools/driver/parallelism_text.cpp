//===- parallelism_text.cpp - A configuration as text ---------------------===//

#include "tools/driver/parallelism_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Parallelism;

std::string meshText(const Parallelism &config) {
  std::string text = fmt::format("dp {}", config.dp);
  if (config.ep > 1)
    text += fmt::format(" (ep {})", config.ep);
  text += fmt::format(" x tp {}", config.tp);
  if (config.pp > 1)
    text += fmt::format(" x pp {}", config.pp);
  if (config.cp > 1)
    text += fmt::format(" x cp {}", config.cp);
  return text;
}

std::string batchText(const Parallelism &config) {
  return fmt::format("micro-batch {} x {}", config.microBatch,
                     config.microBatches());
}

std::string choicesText(const Parallelism &config) {
  std::string text;
  auto add = [&](const std::string &choice) {
    text += (text.empty() ? "" : ", ") + choice;
  };
  if (config.pp > 1) {
    add(nameOf(config.schedule));
    if (config.virtualStages > 1)
      text += fmt::format(" x{}", config.virtualStages);
    auto [least, most] = std::ranges::minmax(config.layers);
    if (least != most)
      add(fmt::format("{} to {} layers a part", least, most));
  }
  if (config.zeroStage > 0) {
    add(fmt::format("ZeRO {}", config.zeroStage));
    if (config.zeroRanks < config.dp)
      text += fmt::format(" over {}", config.zeroRanks);
  }
  if (config.tiles > 1)
    add(fmt::format("weights in {} tiles", config.tiles));
  if (config.recompute != planner::Recompute::none)
    add(std::string(nameOf(config.recompute)) + " recompute");
  if (config.recompute == planner::Recompute::full &&
      config.recomputeLayers > 0)
    text += fmt::format(" of {} layer{} a part", config.recomputeLayers,
                        config.recomputeLayers == 1 ? "" : "s");
  if (config.offload != planner::Offload::none)
    add(std::string(nameOf(config.offload)) + " on the host");
  return text;
}

std::string candidateText(const planner::PlannedCandidate &plan) {
  std::string choices = choicesText(plan.config);
  return fmt::format("{}, micro-batch {}{}{}, {} of {} GiB",
                     meshText(plan.config), plan.config.microBatch,
                     choices.empty() ? "" : ", ", choices,
                     gibText(plan.memory.total()), gibText(plan.memory.limit)) +
         (plan.fits ? ", " + timeText(plan.time.step) + " a step" : "");
}

std::string splitsText(const std::vector<planner::Split> &splits) {
  std::string text;
  for (planner::Split split : splits)
    text += (text.empty() ? "" : ",") + std::string(nameOf(split));
  return text;
}

} // namespace mtplan::tools
