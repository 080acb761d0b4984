//===- collective_arenas.h - The arenas that collectives use ----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_COLLECTIVE_ARENAS_H
#define MTPLAN_RUNTIME_EXECUTOR_COLLECTIVE_ARENAS_H

#include <set>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns, by group of the plan, the arenas of the stage (Stage::arenas) that
/// calls of its ranks read or write. A group has none if a rank calls alone, or
/// with ranks of other stages, whose arenas are laid out differently.
/// All-to-alls use memory outside the arenas.
std::vector<std::set<int>> collectiveArenas(const Plan &plan,
                                            const Stage &stage);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_COLLECTIVE_ARENAS_H
