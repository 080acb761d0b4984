//===- arena_memory.h - The memory of a rank's arenas -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H
#define MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H

#include <cstddef>
#include <set>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns, by group of the plan, the arenas (indices into Stage::arenas) that
/// the group's collectives use within the stage. The set is empty for groups of
/// one rank, and for groups with ranks of other stages, whose arenas have
/// another layout. All-to-alls add no arena, because they communicate through
/// memory outside the arenas.
std::vector<std::set<int>> collectiveArenas(const Plan &plan,
                                            const Stage &stage);

/// Holds one zeroed allocation per arena of a stage. The arena of class host is
/// in the backend's staging memory, arenas that collectives use are in
/// Memory::ofCollectives(), and the others in the backend's memory.
class ArenaMemory {
public:
  /// Throws std::runtime_error with the arena's class and bytes if memory is
  /// insufficient.
  /// \param seen  indices of the arenas of theStage that collectives use
  ArenaMemory(const Stage &theStage, Memory &memory, const std::set<int> &seen);

  /// Returns the start of a tensor for layer `copy` and micro-batch
  /// `microBatch`.
  std::byte *at(const Tensor &tensor, int copy, int microBatch) const;
  /// Returns the start of entry `entry` and slot `slot` of a buffer.
  std::byte *at(int buffer, int entry, int slot) const;
  /// Returns the start of an arena, an index into Stage::arenas.
  std::byte *startOf(int arena) const;

  /// Returns the memory that holds the tensor: staging or the backend's.
  Memory &memoryOf(const Tensor &tensor) const;

private:
  const Stage &stage;
  Memory &near;
  std::vector<Allocation> arenas;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H
