//===- index.h - What refers to something in a plan -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_INDEX_H
#define MTPLAN_RUNTIME_PLAN_INDEX_H

#include <cstddef>

namespace mtplan::runtime {

/// Not negative, as checkRanges has seen.
inline std::size_t indexed(int index) {
  return static_cast<std::size_t>(index);
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_INDEX_H
