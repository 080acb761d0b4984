//===- index.h - Our indices and the standard library's ---------*- C++ -*-===//
//
// Indices are ints here, so that -1 and differences mean what they say; the
// standard library's are unsigned.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_INDEX_H
#define MTPLAN_PLANNER_INDEX_H

#include <cstddef>

namespace mtplan::planner {

/// The place in a vector of an index that is not negative.
inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_INDEX_H
