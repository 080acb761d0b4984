//===- scale.cpp - Numbers along an axis ----------------------------------===//

#include "tools/report/page/scale.h"

#include <algorithm>
#include <cmath>

#include "tools/report/page/html_text.h"

namespace mtplan::tools {

namespace {

double decimal(double) { return 1; }

// Byte counts are round in KiB, MiB, GiB or TiB, and in bytes below.
double binary(double value) {
  double unit = 1;
  while (unit < 1024.0 * 1024 * 1024 * 1024 && value >= 1024 * unit)
    unit *= 1024;
  return unit;
}

} // namespace

const AxisUnit kSecondsUnit = {secondsText, decimal};
const AxisUnit kBytesUnit = {bytesAsText, binary};

std::vector<double> ticksOf(double low, double high, const AxisUnit &unit) {
  constexpr double kAbout = 7;
  if (!(low < high))
    return {};
  double base = unit.step(high);
  double raw = (high - low) / kAbout / base;
  double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = base * power;
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power >= raw * 0.75) {
      step = base * factor * power;
      break;
    }
  std::vector<double> ticks;
  // A step that does not change `high` would loop forever.
  if (!std::isfinite(step) || step <= 0 || high + step == high)
    return ticks;
  double first = std::ceil(low / step - 1e-9);
  for (int i = 0; (first + i) * step <= high + 1e-9 * step; ++i)
    ticks.push_back((first + i) * step + 0.0);
  return ticks;
}

std::vector<int> evenly(int all, int count) {
  std::vector<int> chosen;
  if (count >= all) {
    for (int i = 0; i < all; ++i)
      chosen.push_back(i);
    return chosen;
  }
  if (count == 1)
    return {0};
  for (int i = 0; i < count; ++i)
    chosen.push_back(
        static_cast<int>(static_cast<long long>(i) * (all - 1) / (count - 1)));
  return chosen;
}

} // namespace mtplan::tools
