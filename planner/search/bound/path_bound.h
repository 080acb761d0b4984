//===- path_bound.h - A lower bound of a step by its paths ------*- C++ -*-===//
//
// Bounds the step of all plans by paths through the tasks of the step. Every
// path is a lower bound; the longest one is the step. A path runs some forwards
// and backwards of each stage. The times of these tasks are not known, but two
// lower bounds are: the least time of each task, and the least sum of a stage's
// times, which the memory limit may raise.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_PATH_BOUND_H
#define MTPLAN_PLANNER_SEARCH_BOUND_PATH_BOUND_H

#include <vector>

#include "planner/simulate/step.h"

namespace mtplan::planner {

/// Holds lower bounds of the times of every plan.
struct LeastStep {
  StepProblem problem;
  /// Holds, by virtual stage, the least compute of one micro-batch. This may
  /// exceed the sum of the least times of the phases, because different plans
  /// may reach these times.
  std::vector<Seconds> compute;
  /// Holds, by virtual stage, the least compute of one micro-batch without the
  /// gradients of weights; empty unless the schedule is zero-bubble.
  std::vector<Seconds> withoutWeights;
};

/// Returns a lower bound of the step of every plan whose compute of a step is
/// at least `compute` in each stage.
///
/// The bound comes from a game. The compute of a stage may exceed the sum of
/// the least times of its phases, and every plan spends this excess in some
/// phases. One player distributes the excess over phases and chunks so that the
/// step is short, and the other chooses a path. Each round of fictitious play
/// (Brown 1951, "Iterative solution of games by fictitious play") adds a
/// longest path against the mean distribution; the mean of the paths bounds the
/// step of every distribution.
/// \param compute  by stage
/// \param enough   rounds end when the bound reaches this
/// \param rounds  the most rounds, each of which simulates the step; fewer run
/// if they raise the bound little, or if the step has very many tasks
/// \returns 0 if the step has too many tasks
Seconds pathBound(const LeastStep &least, const std::vector<Seconds> &compute,
                  Seconds enough, int rounds);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_PATH_BOUND_H
