//===- neighbours.cpp - The nearest numbers that would do -----------------===//

#include "tools/exchange/neighbours.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

namespace mtplan::tools {

std::string nearestOf(const std::vector<std::int64_t> &allowed,
                      std::int64_t wanted) {
  auto above = std::ranges::upper_bound(allowed, wanted);
  if (allowed.empty())
    return "none";
  if (above == allowed.end())
    return fmt::format("{}", allowed.back());
  if (above == allowed.begin())
    return fmt::format("{}", *above);
  return fmt::format("{} and {}", *(above - 1), *above);
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
