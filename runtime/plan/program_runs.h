//===- program_runs.h - The runs of a program in a step ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H
#define MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H

#include <tuple>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

struct ProgramRun {
  int copy = 0, microBatch = 0;
  bool operator<(const ProgramRun &other) const {
    return std::tie(copy, microBatch) < std::tie(other.copy, other.microBatch);
  }
};

/// Without those that have all tensors where another of them has.
/// \param stage  that checkPlan finds nothing wrong with
std::vector<ProgramRun> runsOf(const Stage &stage, int program);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H
