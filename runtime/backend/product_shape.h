//===- product_shape.h - An einsum as loops around matrices -----*- C++ -*-===//
//
// c[m, n] = sum over k of a[m, k] b[k, n], for every step of some loops. One
// letter each becomes m, n and k; the others are loops. Loops over letters of
// the result are independent; those over summed letters, samples among them,
// come in order and are added one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_PRODUCT_SHAPE_H
#define MTPLAN_RUNTIME_BACKEND_PRODUCT_SHAPE_H

#include <optional>
#include <vector>

#include "runtime/backend/signature.h"

namespace mtplan::runtime {

/// Elements by which the tensors move on for one more of a letter.
struct LetterStep {
  std::int64_t size = 1;
  std::int64_t a = 0, b = 0, c = 0;
};

struct ProductShape {
  LetterStep m, n, k;             ///< steps in c: of m and n, n's is 1
  std::vector<LetterStep> outer;  ///< of the result, major first
  std::vector<LetterStep> summed; ///< but for k
  std::size_t lhs = 0, rhs = 1;   ///< which operand is a, and b

  /// Nothing if the result's last letter is no matrix's column. Samples are a
  /// loop.
  static std::optional<ProductShape> of(const KernelSpec &spec);
  /// The same, with every loop that lies in memory as one with m, n or k made a
  /// part of it: the fewest products. Samples, too, so that what one gives may
  /// depend on how many there are.
  ProductShape joined() const;
};

/// Where the tensors stand in one step of all loops.
struct Place {
  std::int64_t a = 0, b = 0, c = 0;
};
std::vector<Place> placesOf(const std::vector<LetterStep> &loops);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_PRODUCT_SHAPE_H
