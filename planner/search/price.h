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

/// Equal segments of a part, and what one of them takes.
struct StepRun {
  PhaseTimes times;
  int count = 1;
};

/// A part of the model, as far as the step's time depends on it. Bytes are of
/// one rank's pieces of what a micro-batch hands to the neighbouring parts.
struct StepPart {
  std::vector<StepRun> runs;
  Bytes handedOn, handedBack;
};

/// The step as a problem for the simulator.
/// \param parts  how.pp * how.virtualStages of them; part k is chunk k / pp of
///               stage k % pp
/// \param tied   of one rank's pieces of gradients that the first and the last
///               stage both make
StepProblem stepProblemOf(const std::vector<StepPart> &parts, Bytes tied,
                          const Setting &setting, const Parallelism &how,
                          const Overlaps &overlaps);

/// The same of chosen strategies.
StepProblem stepProblemOf(const ModelGraph &model, const PricedParts &parts,
                          const Setting &setting, const Parallelism &how,
                          const Overlaps &overlaps);

/// Simulates the step. Where it repeats itself from one micro-batch to the
/// next, in the middle of many, that part is simulated once.
StepTime priceStep(const ModelGraph &model, const PricedParts &parts,
                   const Setting &setting, const Parallelism &how,
                   const Overlaps &overlaps);

/// StepTime::step alone, faster.
Seconds stepSecondsOf(StepProblem problem);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_H
