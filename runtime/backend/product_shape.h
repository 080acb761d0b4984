//===- product_shape.h - An einsum as loops around matrices -----*- C++ -*-===//
//
// Describes c[m, n] = sum over k of a[m, k] b[k, n] for every step of some
// loops. One letter each becomes m, n and k; the other letters are loops. Loops
// over letters of the result are independent. Loops over summed letters,
// samples among them, run in order, and each step is added to the previous
// ones.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_PRODUCT_SHAPE_H
#define MTPLAN_RUNTIME_BACKEND_PRODUCT_SHAPE_H

#include <optional>
#include <vector>

#include "runtime/backend/signature.h"

namespace mtplan::runtime {

/// Elements by which the tensors advance when a letter grows by one.
struct LetterStep {
  std::int64_t size = 1;
  std::int64_t a = 0, b = 0, c = 0;
};

struct ProductShape {
  LetterStep m, n, k;             ///< steps of m and n in c; that of n is 1
  std::vector<LetterStep> outer;  ///< letters of the result, major first
  std::vector<LetterStep> summed; ///< summed letters except k
  std::size_t lhs = 0, rhs = 1;   ///< which operand is a, and b

  /// Returns none if the result's last letter is no column of a matrix. Samples
  /// are a loop.
  static std::optional<ProductShape> of(const KernelSpec &spec);
  /// Returns the same with every loop merged into m, n or k that is contiguous
  /// with it: the fewest products. Samples are merged, too, so that the bits of
  /// one sample may depend on the number of samples.
  ProductShape joined() const;
};

/// Offsets of the tensors in one step of all loops.
struct Place {
  std::int64_t a = 0, b = 0, c = 0;
};
std::vector<Place> placesOf(const std::vector<LetterStep> &loops);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_PRODUCT_SHAPE_H
