//===- long_sum.h - A sum in twice double precision -------------*- C++ -*-===//
//
// The norm of all gradients is a sum over elements that every layout deals out
// otherwise. Kept to about 106 bits it rounds to one double whatever the order,
// so that the clip that follows from it is the same for all.
//
// Knuth, The Art of Computer Programming 2, section 4.2.2, theorem B: what a
// sum of two loses is a number, and six operations find it. Not to be compiled
// with contracted or reordered operations.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_LONG_SUM_H
#define MTPLAN_RUNTIME_BACKEND_LONG_SUM_H

#include <cmath>

namespace mtplan::runtime {

struct LongSum {
  double sum = 0.0;
  double lost = 0.0; ///< by rounding `sum`, so far

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
  /// Of what is not finite, what the sum is.
  double value() const { return std::isfinite(sum) ? sum + lost : sum; }
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_LONG_SUM_H
