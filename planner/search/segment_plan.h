//===- segment_plan.h - What was chosen for a run of copies -----*- C++ -*-===//
//
// An assignment read back into the words of the graph: a strategy per operator,
// a layout per parameter and boundary, and every conversion between.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_PLAN_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_PLAN_H

#include <algorithm>
#include <optional>
#include <vector>

#include "planner/search/segment_problem.h"

namespace mtplan::planner {

/// A value brought from one layout into another, within one phase of every
/// micro-batch. Backward conversions of saved values start from `saved`.
struct PlannedConversion {
  int tensor = 0;
  Phase phase = Phase::forward;
  Layout from, to;
};

/// `count` consecutive copies of a segment that are laid out alike.
struct SegmentPlan {
  int segment = 0; ///< index into ModelGraph::segments
  int first = 0;   ///< number of the first copy
  int count = 1;
  std::vector<Strategy> strategies; ///< by op
  /// By tensor: the layout it is made (or handed over) in; inputs: none.
  std::vector<std::optional<Layout>> made;
  /// By tensor: the layout it is kept in from forward to backward, if it is.
  std::vector<std::optional<Layout>> saved;
  /// In an order in which they can run, tensor by tensor.
  std::vector<PlannedConversion> conversions;
  /// By model parameter; empty where the segment does not use it.
  std::vector<std::optional<ParameterState>> parameters;
  std::vector<Layout> carriedIn, gradientOut, carriedOut, gradientIn;
};

SegmentPlan readAssignment(const ModelGraph &model, int segment,
                           const SegmentProblem &problem,
                           const Assignment &assignment);

/// The layout in which reader `operand` of op `op` takes its tensor.
inline Layout wanted(const SegmentGraph &segment, const SegmentPlan &plan,
                     int op, int operand) {
  auto index = static_cast<std::size_t>(op);
  return operandLayout(segment.ops[index], plan.strategies[index], operand);
}

/// The operator that `op` follows, if `op` takes what that makes as it is made;
/// else null. O(operators).
inline const Op *joinedTo(const SegmentGraph &segment, const SegmentPlan &plan,
                          int op) {
  const Op &follower = segment.ops[static_cast<std::size_t>(op)];
  if (follower.follows < 0)
    return nullptr;
  const int made =
      follower.operands[static_cast<std::size_t>(follower.follows)].tensor;
  if (plan.made[static_cast<std::size_t>(made)] !=
      wanted(segment, plan, op, follower.follows))
    return nullptr;
  return &*std::ranges::find_if(segment.ops, [&](const Op &maker) {
    return !maker.results.empty() && maker.results[0].tensor == made;
  });
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_PLAN_H
