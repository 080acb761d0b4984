//===- units_text.cpp - Numbers with units, as text -----------------------===//

#include "tools/text/units_text.h"

#include <cmath>

#include <fmt/format.h>

#include "planner/integers.h"

namespace mtplan::tools {

namespace {

// Formats three digits, never with an exponent: 1234 -> 1234, 12.34 -> 12.3.
std::string threeDigits(double value) {
  double size = std::abs(value);
  int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

struct Unit {
  double size;
  const char *name;
};

// Uses the largest unit in which the value is at least 1, else the last unit.
template <std::size_t N>
std::string inUnits(double value, const Unit (&units)[N]) {
  for (const Unit &unit : units)
    if (std::abs(value) >= 0.9995 * unit.size)
      return threeDigits(value / unit.size) + unit.name;
  return threeDigits(value / units[N - 1].size) + units[N - 1].name;
}

} // namespace

std::string timeText(planner::Seconds time) {
  static constexpr Unit kUnits[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " us"}};
  if (time.value == 0)
    return "0 s";
  return inUnits(time.value, kUnits);
}

std::string gibText(planner::Bytes bytes) {
  double gib = bytes.value / kGiB;
  return fmt::format("{:.{}f}", gib, std::abs(gib) < 9.995 ? 2 : 1);
}

std::string preciseGibText(planner::Bytes bytes) {
  return fmt::format("{:.2f} GiB", bytes.value / kGiB);
}

std::string bytesText(planner::Bytes bytes) {
  if (bytes.value < 1024)
    return fmt::format("{:.0f} B", bytes.value);
  static constexpr Unit kUnits[] = {
      {kGiB, " GiB"}, {kGiB / 1024, " MiB"}, {1024, " KiB"}};
  return inUnits(bytes.value, kUnits);
}

std::string countText(double count) {
  if (count < 1000)
    return fmt::format("{:.0f}", count);
  static constexpr Unit kUnits[] = {
      {1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}};
  return inUnits(count, kUnits);
}

std::string shapeText(const std::vector<std::int64_t> &shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (std::int64_t size : shape) {
    if (!text.empty())
      text += 'x';
    text += std::to_string(size);
  }
  return text;
}

std::string percentText(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string nearestDivisors(std::int64_t number, std::int64_t wanted) {
  return planner::nearestOf(planner::divisorsOf(number), {wanted});
}

std::string nearestMultiples(std::int64_t unit, std::int64_t wanted) {
  std::int64_t below = wanted / unit * unit;
  if (below == 0)
    return fmt::format("{}", unit);
  return fmt::format("{} and {}", below, below + unit);
}

} // namespace mtplan::tools
