//===- relative_position.cpp - Buckets of relative distance ---------------===//

#include "runtime/reference/relative_position.h"

#include <algorithm>
#include <cmath>

namespace mtplan::runtime::reference {

std::int64_t relativeBucket(std::int64_t distance, std::int64_t rows,
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
  const double grown =
      std::log(static_cast<double>(past) / static_cast<double>(exact)) /
      std::log(static_cast<double>(maxDistance) / static_cast<double>(exact)) *
      static_cast<double>(rows - exact);
  // A table with more rows than distances has a row for each distance.
  const bool beyond = maxDistance <= exact;
  return first +
         std::min(rows - 1,
                  beyond ? past : exact + static_cast<std::int64_t>(grown));
}

} // namespace mtplan::runtime::reference
