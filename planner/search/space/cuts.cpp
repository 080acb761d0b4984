//===- cuts.cpp - Where a pipeline may be cut -----------------------------===//

#include "planner/search/space/cuts.h"

#include <algorithm>

#include "planner/search/space/pipeline_parts.h"

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

} // namespace mtplan::planner
