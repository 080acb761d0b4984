//===- divisors.h - The divisors of a number --------------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_DIVISORS_H
#define MTPLAN_PLANNER_DIVISORS_H

#include <cstdint>
#include <vector>

namespace mtplan::planner {

/// All divisors of `number` >= 1, ascending. O(sqrt(number)).
inline std::vector<std::int64_t> divisorsOf(std::int64_t number) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d <= number / d; ++d)
    if (number % d == 0) {
      low.push_back(d);
      if (d != number / d)
        high.push_back(number / d);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_DIVISORS_H
