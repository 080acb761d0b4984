//===- step_form.h - A lower bound of a step with one stage -----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORM_H
#define MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORM_H

#include <utility>
#include <vector>

#include "planner/search/price/price.h"

namespace mtplan::planner {

/// Counts the transfers between replicas in a step that may overlap compute.
struct Transfers {
  double gathers = 1.0;    ///< all-gathers of one weight
  double reductions = 1.0; ///< reductions of one gradient
};

Transfers transfersOf(const Parallelism &config);

/// Bounds a step from below by the sum of all updates, `fixed`, and for each
/// repeat of a segment
///
///   compute * C + gather * G + reduce * R
///   + gatherTax * min(G, gatherLimit) + reduceTax * min(R, reduceLimit),
///
/// where
///   C  is its compute in the step, with all traffic that cannot overlap it,
///   G  is its time of all-gathers that may overlap compute,
///   R  is its time of reductions that may overlap compute.
/// The weights of taxes are 0 unless the traffic runs once a step.
struct StepForm {
  struct Weights {
    double compute = 0.0, gather = 0.0, reduce = 0.0;
    double gatherTax = 0.0, reduceTax = 0.0;
  };
  struct Segment {
    Weights first, others; ///< of the first repeat, and of each other repeat
    Seconds gatherLimit, reduceLimit;
  };
  std::vector<Segment> segments;
  Seconds fixed;

  /// Sets the weights of sums in `setting`, so that the solver minimises this
  /// form.
  void setWeights(Setting &setting) const;
  /// Returns the form's value for a plan.
  Seconds of(const PricedParts &parts, const Parallelism &config) const;
};

/// Returns (1 - share) * a + share * b.
/// \pre both have the same limits
StepForm mean(const StepForm &a, const StepForm &b, double share);

/// Returns the share for which the least value of mean(a, b, share) over the
/// plans is largest, and this value.
std::pair<double, Seconds> bestShare(const StepForm &a, const StepForm &b,
                                     const std::vector<PricedParts> &plans,
                                     const Parallelism &config);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORM_H
