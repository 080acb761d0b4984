//===- einsum.h - An einsum as loops and as matrix products -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_BACKEND_EINSUM_H
#define MTPLAN_RUNTIME_BACKEND_EINSUM_H

#include <optional>
#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/backend/matrix_shape.h"
#include "runtime/backend/signature.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Loops over letters
//===----------------------------------------------------------------------===//

struct Equation {
  std::string lhs, rhs, result;

  /// \throws std::runtime_error like Backend::prepare
  explicit Equation(const KernelSpec &spec);
};

/// Describes nested loops, of which the last is the innermost. Strides are in
/// elements.
struct LetterLoops {
  std::vector<std::int64_t> sizes, left, right;
};

/// Sums over the letters `summed` for each index of the letters `kept`.
struct LetterSums {
  LetterLoops kept, summed;

  explicit LetterSums(const KernelSpec &spec);
};

//===----------------------------------------------------------------------===//
// Loops around matrices
//
// An einsum becomes matrix products c[m, n] = sum over k of a[m, k] b[k, n]
// inside loops. Each of m, n and k is one letter, or has size 1 if no letter
// fits; all other letters become loops. Loops over letters of the result are
// independent. Loops over summed letters, such as the sample letter b, run in
// order, and each iteration adds to c.
//===----------------------------------------------------------------------===//

/// Holds a letter's size, and its strides in elements in the three tensors (0
/// where the tensor lacks the letter).
struct LetterStep {
  std::int64_t size = 1;
  std::int64_t a = 0, b = 0, c = 0;
};

struct ProductShape {
  LetterStep m, n, k;             ///< the stride n.c is 1
  std::vector<LetterStep> outer;  ///< letters of the result, outermost first
  std::vector<LetterStep> summed; ///< summed letters except k
  std::size_t lhs = 0, rhs = 1;   ///< operand indices of a and b

  /// Describes an einsum as products, with a loop over samples. Returns none if
  /// the result is a scalar, or if both operands have the result's last letter.
  static std::optional<ProductShape> of(const KernelSpec &spec);
  /// Merges every loop that is contiguous with m, n or k into that dimension,
  /// which yields the fewest products. Samples are merged too, so the bits of
  /// one sample may depend on the number of samples.
  ProductShape joined() const;
};

/// Holds the tensors' offsets in elements in one iteration of all loops.
struct Place {
  std::int64_t a = 0, b = 0, c = 0;
};
/// Returns the offsets of all iterations, the last loop innermost.
std::vector<Place> placesOf(const std::vector<LetterStep> &loops);

//===----------------------------------------------------------------------===//
// Matrix products
//
// An einsum becomes as few library calls as its shapes allow. A product may
// have samples as rows or sum over samples, so the last bits of one sample may
// depend on the number of samples. If the library does not support the types,
// the product is computed in f32 (or f64), and the result is rounded once.
//===----------------------------------------------------------------------===//

struct MatrixCalls {
  MatrixShape first;            ///< the only product, or a sum's first term
  MatrixShape further;          ///< further terms of a sum, which accumulate
  std::size_t lhs = 0, rhs = 1; ///< operand indices of a and b
  std::vector<LetterStep> outer, summed; ///< loops around the products
  ElementType in = ElementType::f32;     ///< type of a and b
  ElementType made = ElementType::f32;   ///< type of c before rounding
  bool biased = false;                   ///< adds operand 2, cast to `made`

  /// \throws std::runtime_error like Backend::prepare
  static MatrixCalls of(const KernelSpec &spec);
  double flops() const;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_EINSUM_H
