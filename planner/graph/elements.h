//===- elements.h - How many elements a shape has ---------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_GRAPH_ELEMENTS_H
#define MTPLAN_PLANNER_GRAPH_ELEMENTS_H

#include <cstdint>
#include <vector>

namespace mtplan::planner {

/// A double, as prices are: what is too large for 64 bits is not.
inline double elementsOf(const std::vector<std::int64_t> &shape) {
  double product = 1.0;
  for (const std::int64_t size : shape)
    product *= static_cast<double>(size);
  return product;
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_ELEMENTS_H
