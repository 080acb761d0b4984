//===- how_text.cpp - How devices are shared out, in words ----------------===//

#include "tools/how_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace mtplan::tools {

using planner::Parallelism;

std::string meshText(const Parallelism &how) {
  std::string text = fmt::format("dp {}", how.dp);
  if (how.ep > 1)
    text += fmt::format(" (ep {})", how.ep);
  text += fmt::format(" x tp {}", how.tp);
  if (how.pp > 1)
    text += fmt::format(" x pp {}", how.pp);
  if (how.cp > 1)
    text += fmt::format(" x cp {}", how.cp);
  return text;
}

std::string batchText(const Parallelism &how) {
  return fmt::format("micro-batch {} x {}", how.microBatch, how.microBatches());
}

std::string choicesText(const Parallelism &how) {
  std::string text;
  auto add = [&](const std::string &choice) {
    text += (text.empty() ? "" : ", ") + choice;
  };
  if (how.pp > 1) {
    add(nameOf(how.schedule));
    if (how.virtualStages > 1)
      text += fmt::format(" x{}", how.virtualStages);
    auto [least, most] = std::ranges::minmax(how.layers);
    if (least != most)
      add(fmt::format("{} to {} layers a part", least, most));
  }
  if (how.zeroStage > 0) {
    add(fmt::format("ZeRO {}", how.zeroStage));
    if (how.zeroRanks < how.dp)
      text += fmt::format(" over {}", how.zeroRanks);
  }
  if (how.tiles > 1)
    add(fmt::format("weights in {} tiles", how.tiles));
  if (how.recompute != planner::Recompute::none)
    add(std::string(nameOf(how.recompute)) + " recompute");
  if (how.recompute == planner::Recompute::full && how.recomputeLayers > 0)
    text += fmt::format(" of {} layer{} a part", how.recomputeLayers,
                        how.recomputeLayers == 1 ? "" : "s");
  if (how.offload != planner::Offload::none)
    add(std::string(nameOf(how.offload)) + " on the host");
  return text;
}

std::string splitsText(const std::vector<planner::Split> &splits) {
  std::string text;
  for (planner::Split split : splits)
    text += (text.empty() ? "" : ",") + std::string(nameOf(split));
  return text;
}

} // namespace mtplan::tools
