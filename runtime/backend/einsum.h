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

/// The letters of an einsum.
struct Equation {
  std::string lhs, rhs, result;

  /// \throws std::runtime_error like Backend::prepare
  explicit Equation(const KernelSpec &spec);
};

/// Nested loops, the last one innermost, with the elements by which the
/// operands advance in each.
struct LetterLoops {
  std::vector<std::int64_t> sizes, left, right;
};

/// The loops over the result's letters, and within them the summed ones.
struct LetterSums {
  LetterLoops kept, summed;

  explicit LetterSums(const KernelSpec &spec);
};

//===----------------------------------------------------------------------===//
// Loops around matrices
//
// Describes c[m, n] = sum over k of a[m, k] b[k, n] for every step of some
// loops. One letter each becomes m, n and k; the other letters are loops. Loops
// over letters of the result are independent. Loops over summed letters,
// samples among them, run in order, and each step is added to the previous
// ones.
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Matrix products
//
// Uses as few matrix products as the shapes allow. Samples are rows of one of
// them or terms of a sum, so the last bits of one sample may depend on the
// number of samples. Where a library cannot multiply these types, it multiplies
// to f32 (or f64), and the result is rounded once.
//===----------------------------------------------------------------------===//

struct MatrixCalls {
  MatrixShape first;   ///< the first term of a sum, or the only product
  MatrixShape further; ///< further terms, which add
  std::size_t lhs = 0, rhs = 1;          ///< which operand is a, and b
  std::vector<LetterStep> outer, summed; ///< loops around the products
  ElementType in = ElementType::f32;     ///< type of a and b
  ElementType made = ElementType::f32;   ///< type of c before rounding
  bool biased = false;                   ///< operand 2, of type `made`

  /// \throws std::runtime_error like Backend::prepare
  static MatrixCalls of(const KernelSpec &spec);
  double flops() const; ///< of all products
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_EINSUM_H
