//===- followed_product.h - A product with an epilogue ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_FOLLOWED_PRODUCT_H
#define MTPLAN_RUNTIME_BACKEND_FOLLOWED_PRODUCT_H

#include <optional>

#include "runtime/backend/matrix_calls.h"

namespace mtplan::runtime {

/// An einsum and what follows it, if anything does, as one product of matrices,
/// without loops or conversions. Its result is that of the second kernel; the
/// einsum's own is what a gelu keeps, and not written otherwise. Likewise of
/// the sum beside it.
struct FollowedProduct {
  MatrixShape shape;
  std::size_t lhs = 0, rhs = 1; ///< which operand is a, and b
  std::size_t operands = 2;     ///< of the einsum; a third is the bias
  std::size_t result = 1;       ///< which of the results is c
  std::size_t biasGradient = 0; ///< and which the sum, if shape.sums
  /// Whether the operand after them is added, or was kept by a gelu.
  bool takesAddend = false, takesKept = false;
  double flops = 0.0;

  /// None: it is more than that.
  static std::optional<FollowedProduct> of(const KernelSpec &spec);
  /// Of runs that lie evenly apart. None: they are more than the matrices of
  /// one call, each a whole number of kAlignment after the one before.
  static std::optional<FollowedProduct> of(const KernelSpec &spec,
                                           const EvenRuns &runs);
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_FOLLOWED_PRODUCT_H
