//===- arena_memory.cpp - What a rank's arenas lie in ---------------------===//

#include "runtime/executor/arena_memory.h"

#include <stdexcept>
#include <string>

#include <sys/mman.h>

namespace mtplan::runtime {

static std::size_t sized(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

ArenaMemory::ArenaMemory(const Stage &theStage) : stage(theStage) {
  for (const Arena &arena : stage.arenas) {
    void *base = nullptr;
    if (arena.size > 0) {
      base = mmap(nullptr, sized(arena.size), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (base == MAP_FAILED) {
        this->~ArenaMemory();
        throw std::runtime_error("no room for an arena of " +
                                 std::to_string(arena.size) + " bytes");
      }
    }
    bases.push_back(static_cast<std::byte *>(base));
  }
}

ArenaMemory::~ArenaMemory() {
  for (std::size_t i = 0; i < bases.size(); ++i)
    if (bases[i])
      munmap(bases[i], sized(stage.arenas[i].size));
  bases.clear();
}

std::byte *ArenaMemory::at(const Tensor &tensor, int copy,
                           int microBatch) const {
  const Buffer &buffer = stage.buffers[sized(tensor.buffer)];
  const int entry = (tensor.entry + copy * tensor.entryStep) % buffer.entries;
  return at(tensor.buffer, entry, microBatch % buffer.slots);
}

std::byte *ArenaMemory::at(int buffer, int entry, int slot) const {
  const Buffer &all = stage.buffers[sized(buffer)];
  return bases[sized(all.arena)] + all.offset + entry * all.entryStride +
         slot * all.slotStride;
}

} // namespace mtplan::runtime
