//===- offsets.h - Offsets for values that live by turns --------*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_OFFSETS_H
#define MTPLAN_PASSES_MEMORY_OFFSETS_H

#include <cstdint>
#include <vector>

namespace mtplan::passes {

/// The bytes of a value and its live range, both ends included.
struct Lifetime {
  std::int64_t first = 0, last = 0;
  std::int64_t bytes = 0;    ///< > 0
  std::int64_t fixedAt = -1; ///< the offset it already has; -1: none yet
};

struct Offsets {
  std::vector<std::int64_t> at; ///< by lifetime, multiples of the alignment
  std::int64_t total = 0;
};

/// Assigns offsets by best fit, the largest lifetime first and ties by index:
/// each goes to the tightest gap between those that live at the same time.
/// O(n^2 log n).
Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      std::int64_t alignment);

/// Lifetimes of equal bytes, none of which has an offset yet.
using Row = std::vector<std::size_t>;

/// Assigns offsets so that the lifetimes of a row are side by side, each living
/// as long as the whole row does. No lifetime is in two rows.
Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      const std::vector<Row> &rows, std::int64_t alignment);

/// Returns a lower bound of what any assignment needs: the most bytes, each
/// value rounded up to the alignment, that are alive at one moment.
std::int64_t peakOf(const std::vector<Lifetime> &lifetimes,
                    std::int64_t alignment);

inline std::int64_t roundedUp(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_OFFSETS_H
