//===- step_forms.h - Linear lower bounds of a one-stage step ---*- C++ -*-===//
//
// With one pipeline stage, compute overlaps traffic of parameters and gradients
// between replicas. The step takes at least the length of every path through
// its tasks. A path has compute and traffic, and what compute loses while a
// collective runs beside it (replicaTaxOf()). Its length is linear in the times
// of the segments, once a line bounds this loss. Every weighted mean of such
// lengths is a lower bound, too, and the solver of sums minimises it over all
// plans.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORMS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORMS_H

#include <utility>
#include <vector>

#include "planner/search/price/price.h"

namespace mtplan::planner {

/// Bounds a step from below by the sum of all updates, `fixed`, and for each
/// segment compute * C + gather * G + reduce * R, where
///   C  is its compute in the step, with all traffic that cannot overlap it,
///   G  is its time of all-gathers that may overlap compute,
///   R  is its time of reductions that may overlap compute.
struct StepForm {
  struct Segment {
    double compute = 1.0, gather = 0.0, reduce = 0.0;
  };
  std::vector<Segment> segments;
  Seconds fixed;

  /// Returns the weights with which the solver minimises this form.
  std::vector<SumWeights> weights(int zeroStage) const;
  /// Returns the form's value for a plan.
  Seconds of(const PricedParts &parts, const Parallelism &config) const;
};

/// Returns (1 - share) * a + share * b.
StepForm mean(const StepForm &a, const StepForm &b, double share);

/// Returns the share for which the least value of mean(a, b, share) over the
/// plans is largest, and this value.
std::pair<double, Seconds> bestShare(const StepForm &a, const StepForm &b,
                                     const std::vector<PricedParts> &plans,
                                     const Parallelism &config);

/// Returns lower bounds of the step of every plan of a configuration with one
/// stage and without offload. The first form has all compute; in the others,
/// traffic replaces some of it.
/// \param least  by segment: lower bounds of the times of one repeat
std::vector<StepForm> stepFormsOf(const ModelGraph &model,
                                  const std::vector<PhaseTimes> &least,
                                  const Setting &setting,
                                  const Parallelism &config,
                                  const Overlaps &overlaps);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORMS_H
