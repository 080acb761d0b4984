//===- ordered_cuts.cpp - Cuts of a pipeline, by lower bound --------------===//

#include "planner/search/bound/ordered_cuts.h"

#include <algorithm>

#include "planner/search/space/cuts.h"

namespace mtplan::planner {

// A micro-batch passes the stages before a stage first, then the stage works
// through all of them, and the backward of one passes the stages before it
// last. Zero-bubble schedules may have postponed some of that.
Seconds cutBound(const Parallelism &config,
                 const Relaxation::LayerTimes &times) {
  bool putsOff = config.schedule == ScheduleKind::zeroBubble;
  Seconds before, most;
  std::size_t layer = 0;
  for (int count : config.layers) {
    Seconds work, fillDrain;
    for (int i = 0; i < count; ++i, ++layer) {
      work += times.both[layer];
      fillDrain += putsOff ? times.forward[layer] : times.both[layer];
    }
    most = std::max(most,
                    before + work * static_cast<double>(config.microBatches()));
    before += fillDrain;
  }
  return most;
}

OrderedCuts orderedCuts(const Parallelism &config,
                        const Relaxation::LayerTimes &times) {
  std::vector<std::vector<int>> all =
      unevenCuts(static_cast<int>(times.both.size()), config.pp);
  std::vector<std::pair<double, std::size_t>> order;
  Parallelism cut = config;
  for (std::size_t i = 0; i < all.size(); ++i) {
    cut.layers = all[i];
    order.emplace_back(cutBound(cut, times).value, i);
  }
  std::ranges::sort(order);
  OrderedCuts ordered;
  for (auto [bound, i] : order) {
    ordered.layers.push_back(std::move(all[i]));
    ordered.bounds.push_back({bound});
  }
  return ordered;
}

} // namespace mtplan::planner
