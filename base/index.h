//===- index.h - Integers as indices of containers --------------*- C++ -*-===//

#ifndef MTPLAN_BASE_INDEX_H
#define MTPLAN_BASE_INDEX_H

#include <cstddef>
#include <cstdint>

namespace mtplan::base {

/// Converts a number that is known to be 0 or more to the type in which
/// containers count. Sizes and indices are signed everywhere else, so that
/// their differences are right.
constexpr std::size_t sized(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

} // namespace mtplan::base

#endif // MTPLAN_BASE_INDEX_H
