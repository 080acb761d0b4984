//===- arena_memory.h - The memory of a rank's arenas -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H
#define MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H

#include <cstddef>
#include <set>
#include <vector>

#include "runtime/backend/memory.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Returns, by group of the plan, the arenas of the stage (Stage::arenas) that
/// calls of its ranks read or write. A group has none if a rank calls alone, or
/// with ranks of other stages, whose arenas are laid out differently.
/// All-to-alls use memory outside the arenas.
std::vector<std::set<int>> collectiveArenas(const Plan &plan,
                                            const Stage &stage);

/// One zeroed allocation per arena of a stage. The arena of class host lies in
/// the backend's staging memory, arenas that collectives use where the backend
/// prefers them, and the others in the backend's memory.
class ArenaMemory {
public:
  /// Throws std::runtime_error with the class and the bytes if there is not
  /// enough memory.
  /// \param seen  arenas of theStage that collectives read or write
  ArenaMemory(const Stage &theStage, Memory &memory, const std::set<int> &seen);

  /// Returns the start of a tensor for layer `copy` and micro-batch
  /// `microBatch`.
  std::byte *at(const Tensor &tensor, int copy, int microBatch) const;
  /// Returns the start of an entry and a slot of a buffer.
  std::byte *at(int buffer, int entry, int slot) const;
  std::byte *startOf(int arena) const;

  /// Returns the memory that holds the tensor.
  Memory &memoryOf(const Tensor &tensor) const;

private:
  const Stage &stage;
  Memory &near;
  std::vector<Allocation> arenas;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_ARENA_MEMORY_H
