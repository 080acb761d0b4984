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

/// Returns the runs without those whose tensors all lie where another run has
/// them.
/// \param stage  has passed checkPlan
std::vector<ProgramRun> runsOf(const Stage &stage, int program);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PROGRAM_RUNS_H
