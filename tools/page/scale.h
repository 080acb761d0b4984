//===- scale.h - Numbers along an axis --------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_SCALE_H
#define MTPLAN_TOOLS_PAGE_SCALE_H

#include <string>
#include <vector>

namespace mtplan::tools {

/// What an axis counts, and how its numbers are written.
struct AxisUnit {
  std::string (*text)(double);
  /// A round number is 1, 2 or 5 times a power of ten of this much, if the
  /// axis reaches as far as `value`.
  double (*step)(double value);
};
extern const AxisUnit kSecondsUnit, kBytesUnit;

/// Round numbers from `low` to `high`, about seven of them; empty unless low <
/// high. Both ends are finite.
std::vector<double> ticksOf(double low, double high, const AxisUnit &unit);

/// `count` of `all` numbers from 0, as even as can be, both ends included.
std::vector<int> evenly(int all, int count);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_SCALE_H
