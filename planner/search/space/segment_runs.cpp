//===- segment_runs.cpp - Recomputation and tiles of a segment ------------===//

#include "planner/search/space/segment_runs.h"

#include <algorithm>
#include <cmath>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

// Returns the number of operators up to the last forward operator whose result
// backward reads.
std::size_t endOfNeeded(const SegmentGraph &segment) {
  std::vector<bool> isRead(segment.tensors.size(), false);
  for (const Op &op : segment.ops)
    if (op.phase == Phase::backward)
      for (const Use &use : op.operands)
        isRead[at(use.tensor)] = true;
  std::size_t end = 0;
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    if (segment.ops[o].phase == Phase::forward &&
        std::ranges::any_of(segment.ops[o].results, [&](const Use &use) {
          return isRead[at(use.tensor)];
        }))
      end = o + 1;
  return end;
}

double bytesOf(const Parameter &parameter) {
  return tensorBytes(parameter.shape, parameter.elementBytes);
}

std::size_t longestOf(const std::vector<std::int64_t> &shape) {
  return static_cast<std::size_t>(std::ranges::max_element(shape) -
                                  shape.begin());
}

// Returns, per parameter, whether all of its readers are products.
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

bool keepsAllTensors(Recompute recompute, const Software &software) {
  return recompute == Recompute::none ||
         (recompute == Recompute::selective &&
          software.selective == SelectiveRule::attention);
}

std::vector<bool> recomputedOps(const SegmentGraph &segment,
                                Recompute recompute, const Software &software) {
  std::vector<bool> recomputed(segment.ops.size(), false);
  if (recompute == Recompute::none || !isLayer(segment))
    return recomputed;
  bool attentionOnly = keepsAllTensors(recompute, software);
  std::size_t end = !attentionOnly && software.stopsRecomputeEarly
                        ? endOfNeeded(segment)
                        : recomputed.size();
  int products = 0;
  for (std::size_t o = 0; o < end; ++o) {
    const Op &op = segment.ops[o];
    bool attention = op.opClass == OpClass::attention;
    bool kept = recompute == Recompute::selective &&
                (attentionOnly                 ? !attention
                 : op.opClass == OpClass::gemm ? products++ % 2 == 0
                                               : attention);
    recomputed[o] = op.phase == Phase::forward && !kept;
  }
  return recomputed;
}

std::vector<bool> recomputedTensors(const SegmentGraph &segment,
                                    Recompute recompute,
                                    const Software &software) {
  std::vector<bool> recomputed(segment.tensors.size(), false);
  if (keepsAllTensors(recompute, software) || !isLayer(segment))
    return recomputed;
  if (recompute == Recompute::full)
    for (std::size_t t = 0; t < recomputed.size(); ++t)
      recomputed[t] = segment.tensors[t].kind != TensorKind::parameter;
  std::vector<bool> operators = recomputedOps(segment, recompute, software);
  for (std::size_t o = 0; o < operators.size(); ++o)
    for (const Use &use : segment.ops[o].results)
      recomputed[at(use.tensor)] = operators[o];
  return recomputed;
}

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
          if (contains(op.*extent, factor))
            runs[o].along = extent;
        inTiles[at(op.results[0].tensor)] = true;
      }
  }
  return runs;
}

} // namespace mtplan::planner
