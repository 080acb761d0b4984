//===- divisors.h - The divisors of a number --------------------*- C++ -*-===//
//
// And of numbers that may be chosen, the nearest to one that may not, in words.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_DIVISORS_H
#define MTPLAN_PLANNER_DIVISORS_H

#include <cstdint>
#include <string>
#include <vector>

namespace mtplan::planner {

/// Returns all divisors of `number` >= 1, ascending. O(sqrt(number)).
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

/// "2, 4 and 8", with `last` before the last of them.
template <typename Number>
std::string listText(const std::vector<Number> &numbers, const char *last) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0)
      text += i + 1 == numbers.size() ? ' ' + std::string(last) + ' ' : ", ";
    text += std::to_string(numbers[i]);
  }
  return text;
}

/// Returns the nearest of `allowed` (ascending) below and above each `wanted`
/// number, none of which is allowed: "4 and 8"; "none" if `allowed` is empty.
std::string nearestOf(const std::vector<std::int64_t> &allowed,
                      const std::vector<std::int64_t> &wanted);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_DIVISORS_H
