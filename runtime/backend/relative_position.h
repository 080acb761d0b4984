//===- relative_position.h - Buckets of relative distance -------*- C++ -*-===//
//
// The CUDA backend uses this version of relativeBucket(). The reference
// kernels, which the CPU backend also uses for biased attention, have their own
// version in runtime/reference/kernels.h. A test compares both versions.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_RELATIVE_POSITION_H
#define MTPLAN_RUNTIME_BACKEND_RELATIVE_POSITION_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace mtplan::runtime {

/// Returns the row, below `rows`, of T5's relative attention bias (Raffel et
/// al. 2020, section 2.1) for a key `distance` positions after its query.
/// `both` means that keys after the query have rows of their own.
inline std::int64_t relativeBucket(std::int64_t distance, std::int64_t rows,
                                   std::int64_t maxDistance, bool both) {
  std::int64_t first = 0;
  if (both) {
    rows /= 2;
    first = distance > 0 ? rows : 0;
  }
  const std::int64_t past =
      both ? std::abs(distance) : std::max<std::int64_t>(0, -distance);
  const std::int64_t exact = rows / 2;
  if (past < exact)
    return first + past;
  // A table that has a row for every distance needs no logarithmic buckets.
  if (maxDistance <= exact)
    return first + std::min(rows - 1, past);
  const double grown =
      std::log(static_cast<double>(past) / static_cast<double>(exact)) /
      std::log(static_cast<double>(maxDistance) / static_cast<double>(exact)) *
      static_cast<double>(rows - exact);
  return first + std::min(rows - 1, exact + static_cast<std::int64_t>(grown));
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_RELATIVE_POSITION_H
