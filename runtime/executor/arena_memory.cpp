//===- arena_memory.cpp - The memory of a rank's arenas -------------------===//

#include "runtime/executor/arena_memory.h"

#include <stdexcept>
#include <string>

#include "base/index.h"
#include "runtime/plan/instruction_side.h"
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
      throw std::runtime_error(
          "no room for the arena of " + std::string(wordOf(arena.memoryClass)) +
          ", of " + std::to_string(arena.size) + " bytes: " + error.what());
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

} // namespace mtplan::runtime
