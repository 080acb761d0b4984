//===- divisors.cpp - The nearest numbers that would do -------------------===//

#include "planner/divisors.h"

#include <algorithm>
#include <set>

namespace mtplan::planner {

std::string nearestOf(const std::vector<std::int64_t> &allowed,
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
