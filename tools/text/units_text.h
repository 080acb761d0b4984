//===- units_text.h - Numbers with units, as text ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_TEXT_UNITS_TEXT_H
#define MTPLAN_TOOLS_TEXT_UNITS_TEXT_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/units.h"

namespace mtplan::tools {

inline constexpr double kGiB = 1024.0 * 1024.0 * 1024.0; ///< bytes

/// Returns "12.3 s", "205 ms" or "4.56 us".
std::string timeText(planner::Seconds time);
/// Returns a number of GiB without the unit: "28.1", or "4.56" below 10.
std::string gibText(planner::Bytes bytes);
/// Returns "28.13 GiB", always with two decimals, so that sizes can be
/// compared.
std::string preciseGibText(planner::Bytes bytes);
/// Returns "6.00 MiB", "1.50 GiB" or "512 B".
std::string bytesText(planner::Bytes bytes);
/// Returns "8.30 B", "334 M" or "41.6 k".
std::string countText(double count);
/// Returns "2x1024x3072" or "scalar".
std::string shapeText(const std::vector<std::int64_t> &shape);
std::string percentText(double share);

/// Returns the divisors of `number` nearest to `wanted`: "4 and 8".
std::string nearestDivisors(std::int64_t number, std::int64_t wanted);

/// Returns the positive multiples of `unit` nearest to `wanted`: "496 and 504".
std::string nearestMultiples(std::int64_t unit, std::int64_t wanted);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_UNITS_TEXT_H
