//===- arena_memory.cpp - The memory of a rank's arenas -------------------===//

#include "runtime/executor/arena_memory.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/index.h"
#include "runtime/plan/plan_queries.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

using base::sized;

ArenaMemory::ArenaMemory(const Stage &theStage, Memory &memory,
                         const std::set<int> &seen)
    : stage(theStage), near(memory) {
  for (const Arena &arena : stage.arenas)
    try {
      const auto number = static_cast<int>(arenas.size());
      arenas.emplace_back(arena.memoryClass == MemoryClass::host
                              ? near.staging()
                          : seen.contains(number) ? near.ofCollectives()
                                                  : near,
                          sized(arena.size));
    } catch (const std::runtime_error &error) {
      throw std::runtime_error("cannot allocate the arena of class " +
                               std::string(wordOf(arena.memoryClass)) +
                               " with " + std::to_string(arena.size) +
                               " bytes: " + error.what());
    }
}

std::byte *ArenaMemory::at(const Tensor &tensor, int copy,
                           int microBatch) const {
  const Buffer &buffer = stage.buffers[sized(tensor.buffer)];
  const int entry = (tensor.entry + copy * tensor.entryStep) % buffer.entries;
  return at(tensor.buffer, entry, microBatch % buffer.slots);
}

Memory &ArenaMemory::memoryOf(const Tensor &tensor) const {
  return isOnHost(stage, tensor) ? near.staging() : near;
}

std::byte *ArenaMemory::at(int buffer, int entry, int slot) const {
  const Buffer &all = stage.buffers[sized(buffer)];
  return arenas[sized(all.arena)].get() + all.offset + entry * all.entryStride +
         slot * all.slotStride;
}

std::byte *ArenaMemory::startOf(int arena) const {
  return arenas[sized(arena)].get();
}

/// Returns whether the group's collectives stay within the stage: every
/// communicator with a rank of the stage has several ranks, and all of them are
/// ranks of the stage.
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
