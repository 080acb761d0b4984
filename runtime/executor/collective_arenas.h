//===- collective_arenas.h - Which arenas collectives see -------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_COLLECTIVE_ARENAS_H
#define MTPLAN_RUNTIME_EXECUTOR_COLLECTIVE_ARENAS_H

#include <set>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// By group of the plan, the arenas of the stage (Stage::arenas) that calls of
/// its ranks read or write. None where a rank calls alone, or with ranks of
/// other stages, in whose arenas all lies elsewhere. All-to-alls are given
/// memory that lies in no arena.
std::vector<std::set<int>> collectiveArenas(const Plan &plan,
                                            const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_COLLECTIVE_ARENAS_H
