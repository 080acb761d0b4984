//===- recompute.cpp - What backward recomputes ---------------------------===//

#include "planner/search/space/recompute.h"

#include <algorithm>

#include "planner/index.h"

namespace mtplan::planner {

// Returns the number of operators up to the last forward one whose result
// backward reads.
static std::size_t endOfNeeded(const SegmentGraph &segment) {
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

} // namespace mtplan::planner
