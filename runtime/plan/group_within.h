//===- group_within.h - Whether a group belongs to a stage ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_GROUP_WITHIN_H
#define MTPLAN_RUNTIME_PLAN_GROUP_WITHIN_H

#include <algorithm>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns whether the communicators with ranks of the stage have no other
/// ranks.
/// \param stage  its ranks ascend
inline bool isWithin(const Group &group, const Stage &stage) {
  const auto isHere = [&](int rank) {
    return std::ranges::binary_search(stage.ranks, rank);
  };
  return std::ranges::all_of(group.communicators,
                             [&](const std::vector<int> &ranks) {
                               return std::ranges::all_of(ranks, isHere) ||
                                      std::ranges::none_of(ranks, isHere);
                             });
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_GROUP_WITHIN_H
