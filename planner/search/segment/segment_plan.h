//===- segment_plan.h - The choices for a run of repeats --------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PLAN_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PLAN_H

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "planner/integers.h"
#include "planner/search/segment/segment_problem.h"

namespace mtplan::planner {

/// Describes a layout change within one phase of every micro-batch. In
/// backward, the layout changes of a saved value start from SegmentPlan::saved.
struct PlannedConversion {
  int tensor = 0;
  Phase phase = Phase::forward;
  Layout from, to;

  bool operator==(const PlannedConversion &) const = default;
};

/// Describes `count` consecutive repeats of a segment with equal layouts.
struct SegmentPlan {
  int segment = 0;
  int first = 0; ///< number of the first repeat
  int count = 1;
  std::vector<Strategy> strategies; ///< by op
  /// Holds, by tensor, the layout in which the tensor is produced or received;
  /// none for inputs.
  std::vector<std::optional<Layout>> made;
  /// Holds, by tensor, the layout in which the tensor is saved for backward;
  /// none if the tensor is not saved.
  std::vector<std::optional<Layout>> saved;
  /// Lists the layout changes, by tensor, in a legal order.
  std::vector<PlannedConversion> conversions;
  /// Holds the state of each parameter of the model; none if the segment does
  /// not use the parameter.
  std::vector<std::optional<ParameterState>> parameters;
  std::vector<Layout> carriedIn, gradientOut, carriedOut, gradientIn;

  bool operator==(const SegmentPlan &) const = default;
};

/// Returns the plan of one repeat of the segment under an assignment.
SegmentPlan readAssignment(const ModelGraph &model, int segment,
                           const SegmentProblem &problem,
                           const Assignment &assignment);

/// Returns the layout in which operator `op` reads its `operand`.
inline Layout wanted(const SegmentGraph &segment, const SegmentPlan &plan,
                     int op, int operand) {
  auto index = at(op);
  return operandLayout(segment.ops[index], plan.strategies[index], operand);
}

/// Returns the producer with which `op` may be fused, or null. Both are fused
/// only if `op` reads the producer's result in the layout in which the result
/// is produced. The time is linear in the number of operators.
inline const Op *fusedProducer(const SegmentGraph &segment,
                               const SegmentPlan &plan, int op) {
  const Op &consumer = segment.ops[at(op)];
  if (consumer.fusedOperand < 0)
    return nullptr;
  const int made = consumer.operands[at(consumer.fusedOperand)].tensor;
  if (plan.made[at(made)] != wanted(segment, plan, op, consumer.fusedOperand))
    return nullptr;
  return &*std::ranges::find_if(segment.ops, [&](const Op &maker) {
    return !maker.results.empty() && maker.results[0].tensor == made;
  });
}

/// Returns a sentence for every contradiction within or between runs, which are
/// in chain order: a value is read in a layout in which it does not exist;
/// neighbours disagree about a boundary's layout; a tied parameter is stored in
/// two layouts. The time is linear in the size of `plans`.
std::vector<std::string> check(const ModelGraph &graph,
                               const std::vector<SegmentPlan> &plans,
                               const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PLAN_H
