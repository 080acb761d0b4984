//===- neighbours.h - The nearest numbers that would do ---------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_NEIGHBOURS_H
#define MTPLAN_TOOLS_EXCHANGE_NEIGHBOURS_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/divisors.h"

namespace mtplan::tools {

using planner::divisorsOf;

/// Of `allowed`, ascending, the nearest below and above `wanted`, which is not
/// among them: "4 and 8"; "none" if `allowed` is empty.
std::string nearestOf(const std::vector<std::int64_t> &allowed,
                      std::int64_t wanted);

/// "4 and 8", of the divisors of `number` around `wanted`.
std::string nearestDivisors(std::int64_t number, std::int64_t wanted);

/// "496 and 504", of the positive multiples of `unit` around `wanted`.
std::string nearestMultiples(std::int64_t unit, std::int64_t wanted);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_NEIGHBOURS_H
