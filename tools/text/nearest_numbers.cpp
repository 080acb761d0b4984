//===- nearest_numbers.cpp - Nearest allowed numbers ----------------------===//

#include "tools/text/nearest_numbers.h"

#include <fmt/format.h>

namespace mtplan::tools {

std::string nearestOf(const std::vector<std::int64_t> &allowed,
                      std::int64_t wanted) {
  return planner::nearestOf(allowed, {wanted});
}

std::string nearestDivisors(std::int64_t number, std::int64_t wanted) {
  return nearestOf(divisorsOf(number), wanted);
}

std::string nearestMultiples(std::int64_t unit, std::int64_t wanted) {
  std::int64_t below = wanted / unit * unit;
  if (below == 0)
    return fmt::format("{}", unit);
  return fmt::format("{} and {}", below, below + unit);
}

} // namespace mtplan::tools
