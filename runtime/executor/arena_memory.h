//===- arena_memory.h - What a rank's arenas lie in -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H
#define MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H

#include <cstddef>
#include <set>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// One allocation per arena of a stage, zeros: the arena of class host in the
/// backend's staging memory, those that collectives see where the backend likes
/// them best, the others in its own.
class ArenaMemory {
public:
  /// Throws std::runtime_error with the class and the bytes if there is no
  /// room.
  /// \param seen  arenas of theStage that collectives read or write
  ArenaMemory(const Stage &theStage, Memory &memory, const std::set<int> &seen);

  /// Where a tensor of copy `copy` and micro-batch `microBatch` starts.
  std::byte *at(const Tensor &tensor, int copy, int microBatch) const;
  /// Where an entry and a slot of a buffer start.
  std::byte *at(int buffer, int entry, int slot) const;
  std::byte *startOf(int arena) const;

  /// What it lies in.
  Memory &memoryOf(const Tensor &tensor) const;

private:
  const Stage &stage;
  Memory &near;
  std::vector<Allocation> arenas;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H
