//===- pipeline_parts.cpp - The layers of each virtual stage --------------===//

#include "planner/search/space/pipeline_parts.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>

#include "planner/integers.h"

namespace mtplan::planner {

int layersOf(const ModelGraph &model) {
  bool repeated = hasLayers(model);
  int layers = 0;
  for (const SegmentGraph &segment : model.segments)
    if (!repeated || isLayer(segment))
      layers += segment.repeat;
  return layers;
}

std::vector<PipelinePart> pipelineParts(const ModelGraph &model,
                                        const std::vector<int> &layers) {
  std::vector<PipelinePart> parts(std::max<std::size_t>(layers.size(), 1));
  int all = layersOf(model);
  int sum = std::accumulate(layers.begin(), layers.end(), 0);
  bool repeated = hasLayers(model);
  const bool isHeadAlone = repeated && !isLayer(model.segments.back()) &&
                           layers.size() > 1 && layers.back() == 0;
  const std::span<const int> withLayers(layers.begin(),
                                        layers.end() - isHeadAlone);
  if (!layers.empty() &&
      (sum != all ||
       std::ranges::any_of(withLayers, [](int n) { return n < 1; })))
    throw std::invalid_argument("the virtual stages have " +
                                std::to_string(sum) +
                                " layers in total; they must have " +
                                std::to_string(all) + ", at least 1 each");
  std::size_t part = 0;
  int room = layers.empty() ? all : layers[0];
  for (std::size_t s = 0; s < model.segments.size(); ++s) {
    int repeat = model.segments[s].repeat;
    auto segment = static_cast<int>(s);
    if (repeated && !isLayer(model.segments[s])) {
      if (isHeadAlone && room == 0 && part + 2 == layers.size())
        ++part;
      parts[part].push_back({segment, 0, 1});
      continue;
    }
    for (int first = 0; first < repeat;) {
      if (room == 0)
        room = layers[++part];
      int count = std::min(room, repeat - first);
      parts[part].push_back({segment, first, count});
      first += count;
      room -= count;
    }
  }
  return parts;
}

std::vector<int> evenLayers(int layers, int parts) {
  std::vector<int> counts(at(parts), layers / parts);
  int more = layers % parts;
  // The remainder goes to consecutive parts around the middle.
  std::size_t first = static_cast<std::size_t>(parts - more + 1) / 2;
  for (int i = 0; i < more; ++i)
    ++counts[first + at(i)];
  return counts;
}

bool fillsChunks(int layers, int chunks) {
  if (chunks > layers)
    return false;
  for (int besides : {0, 1, 2})
    if ((layers + besides) % chunks == 0)
      return true;
  return false;
}

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
