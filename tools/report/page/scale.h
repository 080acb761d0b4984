//===- scale.h - Numbers along an axis --------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_SCALE_H
#define MTPLAN_TOOLS_REPORT_PAGE_SCALE_H

#include <string>
#include <vector>

namespace mtplan::tools {

/// The unit of an axis, and its number format.
struct AxisUnit {
  std::string (*text)(double);
  /// Returns the power of ten that round numbers are multiples of, by 1, 2 or
  /// 5, for an axis that reaches `value`.
  double (*step)(double value);
};
extern const AxisUnit kSecondsUnit, kBytesUnit;

/// Returns about seven round numbers from `low` to `high`; none unless low <
/// high. Both ends are finite.
std::vector<double> ticksOf(double low, double high, const AxisUnit &unit);

/// Returns `count` indices below `all`, evenly spaced, with both ends.
std::vector<int> evenly(int all, int count);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_SCALE_H
