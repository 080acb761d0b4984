//===- plan_checks.h - The parts of the check -------------------*- C++ -*-===//
//
// checkRanges first: the others index with what it has seen. checkSchedule and
// checkCalls next: the last four follow what they have seen.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H
#define MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H

#include "runtime/plan/faults.h"
#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

void checkRanges(const Plan &plan, Faults &faults);
/// Mesh, groups, and which rank is where.
void checkRanks(const Plan &plan, Faults &faults);
/// Each micro-batch runs what the others run.
void checkSchedule(const Plan &plan, Faults &faults);
/// Operands of every instruction.
void checkCalls(const Plan &plan, Faults &faults);
/// Who works in the host's memory, and when.
void checkSides(const Plan &plan, Faults &faults);
void checkParameters(const Plan &plan, Faults &faults);
/// What is read is what was written.
void checkMemory(const Plan &plan, Faults &faults);
/// Streams of a program meet only where one has waited for the other.
void checkStreams(const Plan &plan, Faults &faults);
/// What is overlapped is alone with its bytes until the schedule ends.
void checkOverlap(const Plan &plan, Faults &faults);
/// What stages say to each other.
void checkMessages(const Plan &plan, Faults &faults);

std::int64_t elementsOf(const Tensor &tensor);

/// The product, or the largest number if it is larger. Both are at least 0.
inline std::int64_t times(std::int64_t a, std::int64_t b) {
  return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

/// By rank, the index of its stage, or -1.
std::vector<int> stagesOfRanks(const Plan &plan);

/// The parts of a step in their order: their names and entries.
struct Phase {
  std::string_view name;
  const std::vector<ScheduleEntry> *entries;
};
std::vector<Phase> phasesOf(const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_CHECKS_H
