//===- cuts.cpp - Where a pipeline may be cut -----------------------------===//

#include "planner/search/cuts.h"

#include <algorithm>

#include "planner/search/pipeline_parts.h"

namespace mtplan::planner {

std::vector<std::vector<int>> unevenCuts(int layers, int stages) {
  std::vector<std::vector<int>> cuts;
  if (stages < 2 || layers < stages)
    return cuts;
  const std::vector<int> even = evenLayers(layers, stages);
  if (stages == 2) {
    for (int first = 1; first < layers; ++first)
      if (first != even.front())
        cuts.push_back({first, layers - first});
    return cuts;
  }
  int between = stages - 2;
  for (int first = 1; first <= layers - between - 1; ++first)
    for (int last = 1; last <= layers - between - first; ++last) {
      std::vector<int> middle = evenLayers(layers - first - last, between);
      if (std::max(first, last) > *std::ranges::max_element(middle))
        break;
      std::vector<int> cut{first};
      cut.insert(cut.end(), middle.begin(), middle.end());
      cut.push_back(last);
      if (cut != even)
        cuts.push_back(std::move(cut));
    }
  return cuts;
}

// A micro-batch goes through the stages before a stage first, then the stage
// works through all of them; what is left of backward of one goes back through
// the stages before, where zero-bubble may have put off some of it.
Seconds cutBound(const Parallelism &how, const Floors::LayerTimes &times) {
  bool putsOff = how.schedule == ScheduleKind::zeroBubble;
  Seconds before, most;
  std::size_t layer = 0;
  for (int count : how.layers) {
    Seconds work, around;
    for (int i = 0; i < count; ++i, ++layer) {
      work += times.both[layer];
      around += putsOff ? times.forward[layer] : times.both[layer];
    }
    most =
        std::max(most, before + work * static_cast<double>(how.microBatches()));
    before += around;
  }
  return most;
}

OrderedCuts orderedCuts(const Parallelism &how,
                        const Floors::LayerTimes &times) {
  std::vector<std::vector<int>> all =
      unevenCuts(static_cast<int>(times.both.size()), how.pp);
  std::vector<std::pair<double, std::size_t>> order;
  Parallelism cut = how;
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
