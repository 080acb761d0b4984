//===- price.h - The simulated step of a plan -------------------*- C++ -*-===//
//
// From the strategies of every pipeline stage to the time of one training step:
// phase times become tasks, what can overlap runs on streams of its own.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_H
#define MTPLAN_PLANNER_SEARCH_PRICE_H

#include <vector>

#include "planner/search/ledger.h"
#include "planner/search/phase_times.h"
#include "planner/simulate/step.h"

namespace mtplan::planner {

/// By part of the model, in model order: its runs.
using PartPlans = std::vector<std::vector<SegmentPlan>>;

/// The step as a problem for the simulator.
/// \param plans  how.pp * how.virtualStages parts; part k is chunk k / pp of
///               stage k % pp
StepProblem stepProblemOf(const ModelGraph &model, const PartPlans &plans,
                          const Setting &setting, const Parallelism &how,
                          const Overlaps &overlaps);

/// Simulates the step. Where it repeats itself from one micro-batch to the
/// next, in the middle of many, that part is simulated once.
StepTime priceStep(const ModelGraph &model, const PartPlans &plans,
                   const Setting &setting, const Parallelism &how,
                   const Overlaps &overlaps);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_H
