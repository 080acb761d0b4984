//===- offsets.h - Offsets for values that live by turns --------*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_OFFSETS_H
#define MTPLAN_PASSES_MEMORY_OFFSETS_H

#include <cstdint>
#include <vector>

namespace mtplan::passes {

/// Bytes needed from one moment to another, both included.
struct Lifetime {
  std::int64_t first = 0, last = 0;
  std::int64_t bytes = 0;    ///< > 0
  std::int64_t fixedAt = -1; ///< where it lies already; -1: nowhere yet
};

struct Offsets {
  std::vector<std::int64_t> at; ///< by lifetime, multiples of the alignment
  std::int64_t total = 0;
};

/// Best fit, the largest first (ties: by index): each goes to the tightest gap
/// between those that live at the same time. O(n^2 log n).
Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      std::int64_t alignment);

/// Lifetimes of equal bytes, none of which is fixed.
using Row = std::vector<std::size_t>;

/// The same, with those of a row one after the other, from when its first lives
/// until its last does. No lifetime is in two rows.
Offsets assignOffsets(const std::vector<Lifetime> &lifetimes,
                      const std::vector<Row> &rows, std::int64_t alignment);

/// No assignment needs less: the most bytes, rounded up to the alignment each,
/// that live at one moment.
std::int64_t peakOf(const std::vector<Lifetime> &lifetimes,
                    std::int64_t alignment);

inline std::int64_t roundedUp(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_OFFSETS_H
