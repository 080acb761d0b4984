//===- long_sum.h - A sum in twice double precision -------------*- C++ -*-===//
//
// The global gradient norm is a sum whose order differs between sharding
// layouts. A sum with about 106 bits rounds to the same double in any order, so
// that gradient clipping has the same bits in all layouts.
//
// Knuth, The Art of Computer Programming 2, section 4.2.2, theorem B: the
// rounding error of a sum of two floating-point numbers is a floating-point
// number, and six operations compute it. The compiler must not contract or
// reorder operations here.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_LONG_SUM_H
#define MTPLAN_RUNTIME_BACKEND_LONG_SUM_H

#include <cmath>

namespace mtplan::runtime {

struct LongSum {
  double sum = 0.0;
  double lost = 0.0; ///< rounding error of `sum` so far

  void add(double value) {
    const double next = sum + value, taken = next - sum;
    lost += (sum - (next - taken)) + (value - taken);
    sum = next;
  }
  void addSquare(double value) {
    const double square = value * value;
    lost += std::fma(value, value, -square);
    add(square);
  }
  void add(const LongSum &other) {
    add(other.sum);
    lost += other.lost;
  }
  /// Returns the corrected sum, or `sum` itself if `sum` is infinite or NaN.
  double value() const { return std::isfinite(sum) ? sum + lost : sum; }
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_LONG_SUM_H
