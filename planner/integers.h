//===- integers.h - Indices, lists and divisors -----------------*- C++ -*-===//
//
// Indices are ints here, so that -1 and differences mean what they say; the
// standard library's are unsigned.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_INTEGERS_H
#define MTPLAN_PLANNER_INTEGERS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace mtplan::planner {

/// Returns the place in a vector of an index that is not negative.
inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

/// Returns whether a list has an element that equals `value`.
template <typename List, typename Value>
bool contains(const List &list, const Value &value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

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

/// Returns "2, 4 and 8", with `last` before the last number.
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
inline std::string nearestOf(const std::vector<std::int64_t> &allowed,
                             const std::vector<std::int64_t> &wanted) {
  std::set<std::int64_t> nearest;
  for (std::int64_t number : wanted) {
    auto above = std::ranges::upper_bound(allowed, number);
    if (above != allowed.begin())
      nearest.insert(*(above - 1));
    if (above != allowed.end())
      nearest.insert(*above);
  }
  if (nearest.empty())
    return "none";
  return listText(std::vector(nearest.begin(), nearest.end()), "and");
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_INTEGERS_H
