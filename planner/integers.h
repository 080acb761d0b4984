//===- integers.h - Indices, lists and divisors -----------------*- C++ -*-===//
//
// Defines helpers for indices, lists and divisors. Indices are ints, so that -1
// and negative differences need no casts.
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

/// Converts an index >= 0 to the standard library's unsigned type.
inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

template <typename List, typename Value>
bool contains(const List &list, const Value &value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Returns all divisors of `number` >= 1, ascending, in O(sqrt(number)) time.
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

/// Returns the numbers as text such as "2, 4 and 8", where `last` is "and".
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

/// Returns the nearest numbers of `allowed` (ascending) below and above each
/// `wanted` number, as text: "4 and 8", or "none" if `allowed` is empty. No
/// `wanted` number may be in `allowed`.
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
