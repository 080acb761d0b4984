//===- block_places.h - Memory of weights gathered ahead --------*- C++ -*-===//
//
// The weights that the previous run gathers for a run form the block of this
// run. While a run computes with its block, the next block arrives. Blocks of
// successive runs alternate between the start and the end of one region. The
// region is as large as the largest pair of successive blocks, so that
// successive blocks never overlap. All layers of a segment run the same
// program, so a weight of a repeated segment has an entry at each end.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PASSES_MEMORY_BLOCK_PLACES_H
#define MTPLAN_PASSES_MEMORY_BLOCK_PLACES_H

#include <vector>

#include "passes/memory/arenas.h"

namespace mtplan::passes {

struct BlockRange {
  mlir::Value value; ///< last use frees the range; null if always in use
  std::int64_t offset = 0, bytes = 0; ///< relative to the region
};

/// Describes the weight `value`, which is gathered ahead, and its memory
/// relative to the region.
struct BlockPlace {
  mlir::Value value;
  Array array; ///< has no arena
  std::int64_t entry = 0, step = 0;
};

struct BlockRegion {
  std::int64_t bytes = 0;
  std::vector<BlockPlace> places;
  /// Lists the ranges that are in use during each program, in the order of the
  /// programs.
  std::vector<std::vector<BlockRange>> inUse;
};

struct BlockProgram {
  mlir::Block *block = nullptr;
  std::int64_t runs = 1;
};

/// Returns the region of the programs of a task. `programs` are in the order in
/// which the task runs them.
/// \param ascends  whether the layers of a program run in ascending order
/// \param sizeOf   returns the bytes of a value
BlockRegion blockRegionOf(llvm::ArrayRef<BlockProgram> programs, bool ascends,
                          llvm::function_ref<std::int64_t(mlir::Value)> sizeOf);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_BLOCK_PLACES_H
