//===- offsets.h - Offsets for values with live ranges ----------*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_OFFSETS_H
#define MTPLAN_PASSES_MEMORY_OFFSETS_H

#include <cstdint>
#include <vector>

namespace mtplan::passes {

/// Holds the bytes of a value and its live range, both ends included.
struct Lifetime {
  std::int64_t first = 0, last = 0;
  std::int64_t bytes = 0;    ///< at least 1
  std::int64_t fixedAt = -1; ///< offset that is already assigned, or -1 if none
};

struct Offsets {
  std::vector<std::int64_t> at; ///< offset of each lifetime, aligned
  std::int64_t total = 0;
};

/// Assigns offsets by best fit, the largest value first: each value gets the
/// smallest sufficient gap between values whose live ranges overlap its own.
/// Values of equal size are assigned in ascending or in descending order of
/// their index, whichever needs fewer bytes. Takes O(n^2 log n) time.
Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      std::int64_t alignment);

/// Lists the indices of lifetimes whose values must get adjacent offsets. The
/// values must have the same size, and none may have a fixed offset.
using Row = std::vector<std::size_t>;

/// Assigns offsets so that the values of a row are adjacent, in row order. A
/// value counts as alive while any value of the same row is alive. No value may
/// be in two rows.
Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      const std::vector<Row> &rows, std::int64_t alignment);

/// Returns a lower bound of the bytes of any assignment: the maximum over time
/// of the live bytes. Each value is rounded up to the alignment.
std::int64_t peakOf(const std::vector<Lifetime> &lifetimes,
                    std::int64_t alignment);

inline std::int64_t roundedUp(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_OFFSETS_H
