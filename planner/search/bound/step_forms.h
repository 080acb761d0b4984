//===- step_forms.h - Lower bounds of a step with one stage -----*- C++ -*-===//
//
// With one pipeline stage, compute overlaps traffic of parameters and gradients
// between replicas. The step takes at least the length of every path through
// its tasks. A path has compute and traffic, and what compute loses while a
// collective runs beside it (replicaTaxOf()). A line bounds this loss, unless
// the traffic runs once a step (StepForm). Every weighted mean of such lengths
// is a lower bound, too, and the solver of sums minimises it over all plans.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORMS_H
#define MTPLAN_PLANNER_SEARCH_BOUND_STEP_FORMS_H

#include <vector>

#include "planner/search/bound/step_form.h"

namespace mtplan::planner {

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
