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
/// the group's collectives use within the stage. Groups of one rank have an
/// empty set. Groups with ranks of other stages have an empty set too, because
/// the arenas of other stages have another layout. All-to-alls add no arena,
/// because they communicate through memory outside the arenas.
std::vector<std::set<int>> collectiveArenas(const Plan &plan,
                                            const Stage &stage);

/// Holds one zeroed allocation per arena of a stage. The arena of class host is
/// in the backend's staging memory. Arenas that collectives use are in
/// Memory::ofCollectives(), and the others are in the backend's memory.
class ArenaMemory {
public:
  /// Throws std::runtime_error with the arena's class and bytes if memory is
  /// insufficient.
  /// \param seen  indices of the arenas of theStage that collectives use
  ArenaMemory(const Stage &theStage, Memory &memory, const std::set<int> &seen);

  std::byte *at(const Tensor &tensor, int copy, int microBatch) const;
  std::byte *at(int buffer, int entry, int slot) const;
  std::byte *startOf(int arena) const;

  /// Returns the staging memory for a tensor of class host, or else the
  /// backend's memory.
  Memory &memoryOf(const Tensor &tensor) const;

private:
  const Stage &stage;
  Memory &near;
  std::vector<Allocation> arenas;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H
