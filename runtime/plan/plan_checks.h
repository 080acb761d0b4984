//===- plan_checks.h - The parts of checkPlan -------------------*- C++ -*-===//
//
// checkRanges runs first, because the others use indices that it has checked.
// checkSchedule and checkCalls follow; the last four rely on them.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H
#define MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H

#include "runtime/plan/faults.h"
#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

void checkRanges(const Plan &plan, Faults &faults);
/// Checks mesh, groups, and the stage of each rank.
void checkRanks(const Plan &plan, Faults &faults);
/// Checks that each micro-batch runs what the others run.
void checkSchedule(const Plan &plan, Faults &faults);
/// Checks the operands of every instruction.
void checkCalls(const Plan &plan, Faults &faults);
/// Checks which instructions use the host's memory, and when.
void checkSides(const Plan &plan, Faults &faults);
void checkParameters(const Plan &plan, Faults &faults);
/// Checks that reads find what was written.
void checkMemory(const Plan &plan, Faults &faults);
/// Checks that instructions of different streams touch the same bytes only if
/// one waits for the other.
void checkStreams(const Plan &plan, Faults &faults);
/// Checks that nothing else touches the bytes of an overlapped collective until
/// the schedule ends.
void checkOverlap(const Plan &plan, Faults &faults);
/// Checks messages between stages.
void checkMessages(const Plan &plan, Faults &faults);

std::int64_t elementsOf(const Tensor &tensor);

/// Returns the product, or the largest number if it is larger. Both factors are
/// at least 0.
inline std::int64_t times(std::int64_t a, std::int64_t b) {
  return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

/// Returns, by rank, the index of its stage, or -1.
std::vector<int> stagesOfRanks(const Plan &plan);

/// The parts of a step in their order: names and entries.
struct Phase {
  std::string_view name;
  const std::vector<ScheduleEntry> *entries;
};
std::vector<Phase> phasesOf(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H
