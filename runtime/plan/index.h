//===- index.h - Indices of a plan ------------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_INDEX_H
#define MTPLAN_RUNTIME_PLAN_INDEX_H

#include <cstddef>

namespace mtplan::runtime {

/// Converts an index that checkRanges has found not to be negative.
inline std::size_t indexed(int index) {
  return static_cast<std::size_t>(index);
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INDEX_H
