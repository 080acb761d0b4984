//===- tiling.cpp - Weights that are used a tile at a time ----------------===//

#include "planner/search/space/tiling.h"

#include <algorithm>
#include <cmath>

#include "planner/index.h"

namespace mtplan::planner {

namespace {

double bytesOf(const Parameter &parameter) {
  double bytes = parameter.elementBytes;
  for (std::int64_t size : parameter.shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

// Cuts the longest dimension, so that its tiles stay wide.
std::size_t longestOf(const std::vector<std::int64_t> &shape) {
  return static_cast<std::size_t>(std::ranges::max_element(shape) -
                                  shape.begin());
}

// Returns by parameter whether every segment reads it in products alone.
std::vector<bool> readByProducts(const ModelGraph &model) {
  std::vector<bool> read(model.parameters.size(), false), other = read;
  for (const SegmentGraph &segment : model.segments)
    for (const Op &op : segment.ops)
      for (const Use &use : op.operands) {
        const Tensor &tensor = segment.tensors[at(use.tensor)];
        if (tensor.kind == TensorKind::parameter)
          (op.opClass == OpClass::gemm ? read : other)[at(tensor.parameter)] =
              true;
      }
  for (std::size_t p = 0; p < read.size(); ++p)
    read[p] = read[p] && !other[p];
  return read;
}

} // namespace

std::vector<int> tilesOfParameters(const ModelGraph &model,
                                   const Setting &setting) {
  std::vector<int> tiles(model.parameters.size(), 1);
  if (setting.tiles == 1)
    return tiles;
  std::vector<bool> products = readByProducts(model);
  double largest = 0.0;
  for (std::size_t p = 0; p < tiles.size(); ++p)
    if (products[p])
      largest = std::max(largest, bytesOf(model.parameters[p]));
  for (std::size_t p = 0; p < tiles.size(); ++p) {
    const Parameter &parameter = model.parameters[p];
    if (!products[p])
      continue;
    auto most = parameter.shape[longestOf(parameter.shape)];
    tiles[p] = static_cast<int>(std::min(
        double(most),
        std::ceil(setting.tiles * bytesOf(parameter) / largest - 1e-9)));
  }
  return tiles;
}

std::vector<int> tilesOfTensors(const ModelGraph &model,
                                const SegmentGraph &segment,
                                const Setting &setting) {
  std::vector<int> tiles(segment.tensors.size(), 1);
  if (setting.tiles == 1)
    return tiles;
  std::vector<int> ofParameters = tilesOfParameters(model, setting);
  for (std::size_t t = 0; t < tiles.size(); ++t)
    if (segment.tensors[t].kind == TensorKind::parameter)
      tiles[t] = ofParameters[at(segment.tensors[t].parameter)];
  for (const Accumulation &sum : segment.accumulations)
    for (const Op &op : segment.ops)
      if (op.opClass == OpClass::gemm && op.results[0].tensor == sum.tensor)
        tiles[at(sum.tensor)] = ofParameters[at(sum.parameter)];
  return tiles;
}

double largestTileOf(const std::vector<std::int64_t> &shape,
                     const Layout &layout, const Mesh &mesh, int tiles) {
  if (tiles == 1)
    return 1.0;
  std::size_t longest = longestOf(shape);
  std::int64_t ranks = 1;
  for (int axis : layout.dims[longest])
    ranks *= mesh.axes[at(axis)].size;
  std::int64_t rows = (shape[longest] + ranks - 1) / ranks;
  std::int64_t most = (rows + tiles - 1) / tiles;
  return static_cast<double>(most) / static_cast<double>(rows);
}

std::vector<OpRun> opRunsOf(const ModelGraph &model,
                            const SegmentGraph &segment,
                            const Setting &setting) {
  std::vector<OpRun> runs =
      opRunsOf(segment, setting.machine->device, *setting.software,
               setting.precision, setting.devices);
  if (setting.tiles == 1)
    return runs;
  std::vector<int> tiles = tilesOfTensors(model, segment, setting);
  std::vector<bool> inTiles(segment.tensors.size(), false);
  for (std::size_t o = 0; o < runs.size(); ++o) {
    const Op &op = segment.ops[o];
    if (op.fusedOperand >= 0 &&
        inTiles[at(op.operands[at(op.fusedOperand)].tensor)])
      runs[o].savedPasses = 0;
    if (op.opClass != OpClass::gemm)
      continue;
    for (const std::vector<Use> *uses : {&op.operands, &op.results})
      for (const Use &use : *uses) {
        if (tiles[at(use.tensor)] <= runs[o].tiles)
          continue;
        int factor =
            use.factors[longestOf(segment.tensors[at(use.tensor)].shape)];
        runs[o].tiles = tiles[at(use.tensor)];
        for (auto extent : {&Op::m, &Op::n, &Op::k, &Op::batch})
          if (std::ranges::find(op.*extent, factor) != (op.*extent).end())
            runs[o].along = extent;
        inTiles[at(op.results[0].tensor)] = true;
      }
  }
  return runs;
}

} // namespace mtplan::planner
