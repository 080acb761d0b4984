//===- collective_arenas.cpp - The arenas that collectives use ------------===//

#include "runtime/executor/collective_arenas.h"

#include <algorithm>

#include "runtime/plan/index.h"

namespace mtplan::runtime {

/// Returns whether ranks of the stage communicate in the group, and no others.
static bool isWithin(const Stage &stage, const Group &group) {
  const auto isOurs = [&](int rank) {
    return std::ranges::binary_search(stage.ranks, rank);
  };
  return std::ranges::all_of(
      group.communicators, [&](const std::vector<int> &ranks) {
        return std::ranges::none_of(ranks, isOurs) ||
               (ranks.size() > 1 && std::ranges::all_of(ranks, isOurs));
      });
}

std::vector<std::set<int>> collectiveArenas(const Plan &plan,
                                            const Stage &stage) {
  std::vector<bool> within;
  for (const Group &group : plan.groups)
    within.push_back(isWithin(stage, group));
  std::vector<std::set<int>> arenas(plan.groups.size());
  for (const Program &program : stage.programs)
    for (const Instruction &instruction : program.instructions) {
      const auto *call = std::get_if<Collective>(&instruction.what);
      if (!call || call->kind == CollectiveKind::allToAll ||
          !within[indexed(call->group)])
        continue;
      for (const auto *tensors : {&instruction.inputs, &instruction.outputs})
        for (const Tensor &tensor : *tensors)
          arenas[indexed(call->group)].insert(
              stage.buffers[indexed(tensor.buffer)].arena);
    }
  return arenas;
}

} // namespace mtplan::runtime
