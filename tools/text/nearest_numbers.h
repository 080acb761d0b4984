//===- nearest_numbers.h - Nearest allowed numbers --------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_NEAREST_NUMBERS_H
#define MTPLAN_TOOLS_TEXT_NEAREST_NUMBERS_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/divisors.h"

namespace mtplan::tools {

using planner::divisorsOf;

/// Returns the nearest of `allowed`, ascending, below and above `wanted`, which
/// is not among them: "4 and 8"; "none" if `allowed` is empty.
std::string nearestOf(const std::vector<std::int64_t> &allowed,
                      std::int64_t wanted);

/// Returns the nearest divisors of `number`: "4 and 8".
std::string nearestDivisors(std::int64_t number, std::int64_t wanted);

/// Returns the nearest positive multiples of `unit`: "496 and 504".
std::string nearestMultiples(std::int64_t unit, std::int64_t wanted);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_NEAREST_NUMBERS_H
