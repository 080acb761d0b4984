//===- index.h - Integers as indices of containers --------------*- C++ -*-===//

#ifndef MTPLAN_BASE_INDEX_H
#define MTPLAN_BASE_INDEX_H

#include <cstddef>
#include <cstdint>

namespace mtplan::base {

/// Converts a non-negative integer to std::size_t, the index type of
/// containers. Most other sizes and indices are signed, so that subtraction
/// does not wrap around.
constexpr std::size_t sized(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

} // namespace mtplan::base

#endif // MTPLAN_BASE_INDEX_H
