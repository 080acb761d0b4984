//===- units.h - Quantities that cannot be mixed up -------------*- C++ -*-===//
//
// Defines types for quantities with units, so that units cannot be mixed up:
//
//   Bytes        size in memory or on the wire      (double, 1 B)
//   Seconds      modelled or measured time          (double, 1 s)
//   Flops        floating-point operations          (double, 1 multiply OR add)
//   BytesPerSec  bandwidth, one direction           (double, 1 B/s)
//   FlopsPerSec  throughput                         (double, 1 flop/s)
//
// Gigabytes and microseconds exist only where text is read or printed, as in
// machine files and reports. Numbers are converted there and nowhere else.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_UNITS_H
#define MTPLAN_PLANNER_UNITS_H

#include <compare>

namespace mtplan::planner {

/// Holds a double with a unit, and adds only quantities of the same unit.
/// Scaling keeps the unit; the ratio of two quantities is a plain number.
template <typename Tag> struct Quantity {
  double value = 0.0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the default.
  auto operator<=>(const Quantity &) const = default;

  Quantity &operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  friend Quantity operator+(Quantity a, Quantity b) {
    return {a.value + b.value};
  }
  friend Quantity operator-(Quantity a, Quantity b) {
    return {a.value - b.value};
  }
  friend Quantity operator*(Quantity a, double k) { return {a.value * k}; }
  friend Quantity operator*(double k, Quantity a) { return {k * a.value}; }
  friend Quantity operator/(Quantity a, double k) { return {a.value / k}; }
  friend double operator/(Quantity a, Quantity b) { return a.value / b.value; }
};

using Bytes = Quantity<struct BytesTag>;
using Seconds = Quantity<struct SecondsTag>;
using Flops = Quantity<struct FlopsTag>;
using BytesPerSec = Quantity<struct BytesPerSecTag>;
using FlopsPerSec = Quantity<struct FlopsPerSecTag>;

inline Seconds operator/(Bytes size, BytesPerSec rate) {
  return {size.value / rate.value};
}
inline Seconds operator/(Flops work, FlopsPerSec rate) {
  return {work.value / rate.value};
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_UNITS_H
