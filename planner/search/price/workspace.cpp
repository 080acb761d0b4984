//===- workspace.cpp - Transient values of a segment ----------------------===//

#include "planner/search/price/workspace.h"

#include <algorithm>

#include "planner/integers.h"
#include "planner/search/space/segment_runs.h"

namespace mtplan::planner {

// Returns whether replicas exchange all weights of a segment, or all their
// gradients, at once (ZeRO-3). Tiles are exchanged one by one.
static bool exchangesBlocks(const Setting &setting) {
  return setting.zeroStage > 2 && setting.tiles == 1;
}

bool gathersAhead(const Setting &setting) {
  return exchangesBlocks(setting) && setting.gathersAhead &&
         setting.software->overlap.gather;
}

Workspace::Workspace(const ModelGraph &model, const SegmentPlan &segmentPlan,
                     const Setting &setting, BlockBytes ahead)
    : segment(model.segments[at(segmentPlan.segment)]), plan(segmentPlan),
      mesh(setting.mesh), overlap(setting.software->overlap), next(ahead),
      isOfBlocks(exchangesBlocks(setting)),
      tiles(tilesOfTensors(model, segment, setting)),
      liveness(segment.ops.size()) {}

Liveness::Peak Workspace::peak() {
  // A collective over the tensor axis moves all tiles in one message.
  for (const PlannedConversion &conversion : plan.conversions)
    forEachMove(conversion.from, conversion.to, [&](const StepMove &step) {
      if (isCollective(step.kind) && isTensorAxis(step.axis))
        tiles[at(conversion.tensor)] = 1;
    });
  for (std::size_t t = 0; t < segment.tensors.size(); ++t)
    if (segment.tensors[t].kind == TensorKind::activation && plan.made[t])
      addVersion(t, *plan.made[t], segment.tensors[t].phase);
  for (const PlannedConversion &conversion : plan.conversions)
    addVersion(at(conversion.tensor), conversion.to, conversion.phase);
  for (Phase phase : {Phase::forward, Phase::backward})
    if (isOfBlocks)
      addBlocks(phase);
    else
      addMessageBuffers(phase);
  return liveness.peak();
}

BlockBytes Workspace::block() const {
  BlockBytes bytes;
  for (const Exchanged &one : exchangedIn(Phase::forward, true))
    bytes.forward += one.bytes + one.between;
  for (const Exchanged &one : exchangedIn(Phase::backward, true))
    bytes.backward += one.bytes + one.between;
  return bytes;
}

std::vector<int> Workspace::decisiveTensors(const Liveness::Peak &peak) const {
  std::vector<int> tensors = liveness.aliveAt(peak.op);
  // A message is buffered while the previous weight is in use, so the
  // buffers depend on the layouts of all weights.
  for (std::size_t t = 0; buffersMessages && t < segment.tensors.size(); ++t)
    if (segment.tensors[t].kind == TensorKind::parameter ||
        isAccumulated(segment, static_cast<int>(t)))
      tensors.push_back(static_cast<int>(t));
  return tensors;
}

double Workspace::inputs(std::vector<std::vector<Layout>> &known) const {
  known.resize(segment.tensors.size());
  double bytes = 0.0;
  for (std::size_t t = 0; t < segment.tensors.size(); ++t) {
    if (segment.tensors[t].kind != TensorKind::input)
      continue;
    std::vector<Layout> &layouts = known[t];
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      for (std::size_t i = 0; i < segment.ops[o].operands.size(); ++i) {
        if (at(segment.ops[o].operands[i].tensor) != t)
          continue;
        Layout layout =
            wanted(segment, plan, static_cast<int>(o), static_cast<int>(i));
        if (contains(layouts, layout))
          continue;
        layouts.push_back(layout);
        bytes += localBytes(segment.tensors[t].shape, layout,
                            segment.tensors[t].elementBytes, mesh);
      }
  }
  return bytes;
}

Workspace::Span Workspace::spanOf(Phase phase) const {
  Span span{segment.ops.size(), 0};
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    if (segment.ops[o].phase == phase)
      span = {std::min(span.first, o), o};
  return span;
}

// Returns the live range of a tensor in one layout: from the first to the last
// operator of the phase that produces or reads the tensor. A value from a
// neighbouring segment is alive from the start of the phase on, and a value for
// a neighbouring segment until the end of the phase.
Workspace::Span Workspace::lifeOf(std::size_t t, const Layout &layout,
                                  Phase phase) const {
  Span all = spanOf(phase), life{segment.ops.size(), 0};
  if (all.empty())
    return life;
  for (std::size_t o = all.first; o <= all.last; ++o)
    if (segment.ops[o].phase == phase && touches(segment.ops[o], t))
      life = {std::min(life.first, o), o};
  bool forward = phase == Phase::forward;
  if (forward ? crosses(segment.carriedIn, plan.carriedIn, t, layout)
              : crosses(segment.gradientIn, plan.gradientIn, t, layout))
    life.first = all.first;
  if (forward ? crosses(segment.carriedOut, plan.carriedOut, t, layout)
              : crosses(segment.gradientOut, plan.gradientOut, t, layout))
    life.last = all.last;
  return life;
}

double Workspace::tileBytes(std::size_t t, const Layout &layout) const {
  const Tensor &tensor = segment.tensors[t];
  return localBytes(tensor.shape, layout, tensor.elementBytes, mesh) *
         largestTileOf(tensor.shape, layout, mesh, tiles[t]);
}

void Workspace::addVersion(std::size_t t, const Layout &layout, Phase phase) {
  if (plan.saved[t] && *plan.saved[t] == layout)
    return;
  if (Span life = lifeOf(t, layout, phase); !life.empty())
    liveness.add(t, life.first, life.last, tileBytes(t, layout));
}

double Workspace::betweenBytes(const PlannedConversion &conversion) const {
  const Tensor &tensor = segment.tensors[at(conversion.tensor)];
  double bytes = 0.0;
  for (const ReshardStep &step : reshardSteps(conversion.from, conversion.to))
    if (step.result != conversion.to)
      bytes += localBytes(tensor.shape, step.result, tensor.elementBytes, mesh);
  return bytes;
}

// Returns the weights or gradients that replicas exchange in a phase, in the
// order in which they are used or produced.
std::vector<Workspace::Exchanged> Workspace::exchangedIn(Phase phase,
                                                         bool weights) const {
  std::vector<Exchanged> all;
  for (const PlannedConversion &conversion : plan.conversions) {
    std::size_t t = at(conversion.tensor);
    bool ofState = weights ? segment.tensors[t].kind == TensorKind::parameter
                           : isAccumulated(segment, conversion.tensor);
    bool sent = false;
    forEachMove(conversion.from, conversion.to, [&](const StepMove &step) {
      sent |= isCollective(step.kind) && !isTensorAxis(step.axis);
    });
    const Layout &held = weights ? conversion.to : conversion.from;
    Span life = lifeOf(t, held, phase);
    if (conversion.phase == phase && ofState && sent && !life.empty())
      all.push_back({t, life, tileBytes(t, held),
                     tileBytes(t, weights ? conversion.from : conversion.to),
                     isOfBlocks ? betweenBytes(conversion) : 0.0,
                     tiles[t] > 1});
  }
  std::ranges::stable_sort(all, {}, [&](const Exchanged &one) {
    return weights ? one.life.first : one.life.last;
  });
  return all;
}

// Adds the buffers of overlapped messages. A weight, or the next tile of a
// weight, is received while the previous weight or tile is in use. A gradient
// is sent while the next gradient is computed. The first weight and the last
// gradient of a repeat overlap with a neighbouring repeat.
void Workspace::addMessageBuffers(Phase phase) {
  Span all = spanOf(phase);
  auto add = [&](const Exchanged &one, std::size_t from, std::size_t end) {
    if (from < end)
      liveness.add(one.tensor, from, end - 1, one.bytes);
  };
  std::vector<Exchanged> weights, gradients;
  if (overlap.gather)
    weights = exchangedIn(phase, true);
  if (overlap.reduce)
    gradients = exchangedIn(phase, false);
  buffersMessages = buffersMessages || !weights.empty() || !gradients.empty();
  for (std::size_t i = 0; i < weights.size(); ++i)
    add(weights[i], i > 0 ? weights[i - 1].life.first : all.first,
        weights[i].life.first);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    add(gradients[i], gradients[i].life.last + 1,
        (i + 1 < gradients.size() ? gradients[i + 1].life.last : all.last) + 1);
  if (plan.count > 1 && !weights.empty())
    add(weights.front(), weights.back().life.first, all.last + 1);
  if (plan.count > 1 && !gradients.empty())
    add(gradients.back(), all.first, gradients.front().life.last + 1);
  for (const std::vector<Exchanged> *list : {&weights, &gradients})
    for (const Exchanged &one : *list)
      if (one.inTiles)
        liveness.add(one.tensor, one.life.first, one.life.last, one.bytes);
}

// Adds the values of blocks, which are all weights or all gradients of a
// segment. All weights of a phase are received before the phase, and all
// gradients are reduce-scattered after the phase. The shards are then
// accumulated.
void Workspace::addBlocks(Phase phase) {
  const Span all = spanOf(phase);
  if (all.empty())
    return;
  const double ahead = phase == Phase::forward ? next.forward : next.backward;
  for (const Exchanged &one : exchangedIn(phase, true)) {
    if (one.life.first > all.first)
      liveness.add(one.tensor, all.first, one.life.first - 1, one.bytes);
    liveness.add(all.first, ahead > 0.0 ? all.last : all.first, one.between);
    // Repeats alternate between two buffers, which other values cannot use.
    if (ahead > 0.0 && plan.count > 1 && one.life.last < all.last)
      liveness.add(one.life.last + 1, all.last, one.bytes);
  }
  for (const Exchanged &one : exchangedIn(phase, false))
    if (one.life.last < all.last) {
      liveness.add(one.tensor, one.life.last + 1, all.last, one.bytes);
      liveness.add(one.tensor, all.last, all.last,
                   one.shardBytes + one.between);
    }
  liveness.add(all.first, all.last, ahead);
  if (plan.count < 2)
    return;
  // Repeats pass a value on through two alternating buffers.
  const auto keep = [&](const std::vector<int> &carried,
                        const std::vector<Layout> &layouts) {
    for (std::size_t i = 0; i < carried.size(); ++i) {
      const std::size_t t = at(carried[i]);
      const Span life = lifeOf(t, layouts[i], phase);
      if (life.empty() || (plan.saved[t] && *plan.saved[t] == layouts[i]))
        continue;
      if (life.first > all.first)
        liveness.add(t, all.first, life.first - 1, tileBytes(t, layouts[i]));
      if (life.last < all.last)
        liveness.add(t, life.last + 1, all.last, tileBytes(t, layouts[i]));
    }
  };
  const bool isForward = phase == Phase::forward;
  keep(isForward ? segment.carriedIn : segment.gradientIn,
       isForward ? plan.carriedIn : plan.gradientIn);
  keep(isForward ? segment.carriedOut : segment.gradientOut,
       isForward ? plan.carriedOut : plan.gradientOut);
}

bool Workspace::isTensorAxis(int axis) const {
  return roleOf(mesh.axes[at(axis)]) == AxisRole::tensor;
}

bool Workspace::touches(const Op &op, std::size_t t) {
  auto is = [&](const Use &use) { return at(use.tensor) == t; };
  return std::ranges::any_of(op.operands, is) ||
         std::ranges::any_of(op.results, is);
}

bool Workspace::crosses(const std::vector<int> &tensors,
                        const std::vector<Layout> &layouts, std::size_t t,
                        const Layout &layout) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (at(tensors[i]) == t && layouts[i] == layout)
      return true;
  return false;
}
} // namespace mtplan::planner
