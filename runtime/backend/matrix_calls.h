//===- matrix_calls.h - An einsum as products of matrices -------*- C++ -*-===//
//
// As few products of matrices as the shapes allow; samples are rows, or terms
// of a sum, of one of them, so what one sample gives may differ in its last
// bits with how many there are. Where a library has no product between types,
// it multiplies to f32 (or f64), and the result is rounded once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_MATRIX_CALLS_H
#define MTPLAN_RUNTIME_BACKEND_MATRIX_CALLS_H

#include <vector>

#include "runtime/backend/matrix_shape.h"
#include "runtime/backend/product_shape.h"

namespace mtplan::runtime {

struct MatrixCalls {
  MatrixShape first;            ///< of a sum's terms, and of what is no sum
  MatrixShape further;          ///< its other terms, which add
  std::size_t lhs = 0, rhs = 1; ///< which operand is a, and b
  std::vector<LetterStep> outer, summed; ///< loops around them
  ElementType in = ElementType::f32;     ///< that a and b are to have
  ElementType made = ElementType::f32;   ///< that c has before it is rounded
  bool biased = false;                   ///< operand 2, of type `made`

  /// \throws std::runtime_error as Backend::prepare does
  static MatrixCalls of(const KernelSpec &spec);
  double flops() const; ///< of all
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MATRIX_CALLS_H
