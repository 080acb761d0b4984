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

/// Some copies of a run, and what one of them takes.
struct PricedRun {
  const SegmentPlan *plan = nullptr;
  const PhaseTimes *times = nullptr;
  int count = 1;
};

/// By part of the model, in model order.
using PricedParts = std::vector<std::vector<PricedRun>>;

/// The step as a problem for the simulator.
/// \param parts  how.pp * how.virtualStages of them; part k is chunk k / pp of
///               stage k % pp
StepProblem stepProblemOf(const ModelGraph &model, const PricedParts &parts,
                          const Setting &setting, const Parallelism &how,
                          const Overlaps &overlaps);

/// Simulates the step. Where it repeats itself from one micro-batch to the
/// next, in the middle of many, that part is simulated once.
StepTime priceStep(const ModelGraph &model, const PricedParts &parts,
                   const Setting &setting, const Parallelism &how,
                   const Overlaps &overlaps);

/// StepTime::step alone, faster.
Seconds stepSecondsOf(const ModelGraph &model, const PricedParts &parts,
                      const Setting &setting, const Parallelism &how,
                      const Overlaps &overlaps);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_H
