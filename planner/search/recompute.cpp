//===- recompute.cpp - What backward computes a second time ---------------===//

#include "planner/search/recompute.h"

#include <algorithm>

#include "planner/index.h"

namespace mtplan::planner {

// Number of operators up to the last forward one whose result backward reads.
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

std::vector<bool> operatorsAgain(const SegmentGraph &segment,
                                 Recompute recompute,
                                 const Software &software) {
  std::vector<bool> again(segment.ops.size(), false);
  if (recompute == Recompute::none || !isLayer(segment))
    return again;
  bool attentionOnly = keepsAllTensors(recompute, software);
  std::size_t end = !attentionOnly && software.stopsRecomputeEarly
                        ? endOfNeeded(segment)
                        : again.size();
  int products = 0;
  for (std::size_t o = 0; o < end; ++o) {
    const Op &op = segment.ops[o];
    bool attention = op.opClass == OpClass::attention;
    bool kept = recompute == Recompute::selective &&
                (attentionOnly                 ? !attention
                 : op.opClass == OpClass::gemm ? products++ % 2 == 0
                                               : attention);
    again[o] = op.phase == Phase::forward && !kept;
  }
  return again;
}

std::vector<bool> tensorsAgain(const SegmentGraph &segment, Recompute recompute,
                               const Software &software) {
  std::vector<bool> again(segment.tensors.size(), false);
  if (keepsAllTensors(recompute, software) || !isLayer(segment))
    return again;
  if (recompute == Recompute::full)
    for (std::size_t t = 0; t < again.size(); ++t)
      again[t] = segment.tensors[t].kind != TensorKind::parameter;
  std::vector<bool> operators = operatorsAgain(segment, recompute, software);
  for (std::size_t o = 0; o < operators.size(); ++o)
    for (const Use &use : segment.ops[o].results)
      again[at(use.tensor)] = operators[o];
  return again;
}

} // namespace mtplan::planner
