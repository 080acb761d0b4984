//===- stage_layers.cpp - The layers of a run's stages --------------------===//

#include "tools/runs/stage_layers.h"

#include "planner/integers.h"
#include "planner/search/space/pipeline_parts.h"

namespace mtplan::tools {

using planner::at;

namespace {

// Distributes blocks over stages as nanotron of February 2025 does
// (models/base.py, build_model; models/llama.py, get_block_compute_costs): the
// cost of a layer is the number of its weights without those of the keys and
// values, the head costs its weights, and all other blocks cost nothing. A
// stage ends with the block that takes the sum of costs beyond its share. The
// loss is a block after the head; the result has both on the loss's stage.
std::vector<int> layersByWeights(const RunRow &row, int layers) {
  const auto hidden = static_cast<double>(row.hidden);
  const auto inner = static_cast<double>(row.inner.value_or(4 * row.hidden));
  const double layer = 4 * hidden * hidden + 3 * inner * hidden;
  const double head = static_cast<double>(row.vocabulary) * hidden;
  const double total = layers * layer + head;
  const auto stages = static_cast<double>(row.pp);
  std::vector<int> counts(1);
  double sum = 0.0;
  auto end = [&](double cost) {
    sum += cost;
    const auto stage = static_cast<double>(counts.size());
    if (sum > total * stage / stages && stage < stages)
      counts.push_back(0);
  };
  for (int i = 0; i < layers; ++i) {
    ++counts.back();
    end(layer);
  }
  if (counts.back() > 0)
    end(head);
  return counts;
}

} // namespace

std::vector<int> stageLayersOf(const RunRow &row, int layers) {
  if (row.sourceHas("nanotron") && row.chunks == 1)
    return layersByWeights(row, layers);
  return planner::evenLayers(
      layers, static_cast<int>(row.pp > 1 ? row.pp * row.chunks : 1));
}

} // namespace mtplan::tools
