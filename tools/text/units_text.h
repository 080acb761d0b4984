//===- units_text.h - Quantities for people ---------------------*- C++ -*-===//
//
// Seconds become ms, and bytes GiB, only here.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_TEXT_UNITS_TEXT_H
#define MTPLAN_TOOLS_TEXT_UNITS_TEXT_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/units.h"

namespace mtplan::tools {

/// "12.3 s", "205 ms", "4.56 us": three digits.
std::string timeText(planner::Seconds time);
/// "28.1": GiB without the unit; two decimals below 10.
std::string gibText(planner::Bytes bytes);
/// "28.13 GiB": always two decimals, for sizes that are compared.
std::string preciseGibText(planner::Bytes bytes);
/// "6 MiB", "1.5 GiB", "512 B".
std::string bytesText(planner::Bytes bytes);
/// "8.3 B", "334 M", "41.6 k": three digits.
std::string countText(double count);
/// "2x1024x3072", "scalar".
std::string shapeText(const std::vector<std::int64_t> &shape);
/// "48.1 %".
std::string percentText(double share);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_TEXT_UNITS_TEXT_H
