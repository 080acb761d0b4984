//===- matrix_calls.h - An einsum as matrix products ------------*- C++ -*-===//
//
// Uses as few matrix products as the shapes allow. Samples are rows of one of
// them or terms of a sum, so the last bits of one sample may depend on the
// number of samples. Where a library cannot multiply these types, it multiplies
// to f32 (or f64), and the result is rounded once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_MATRIX_CALLS_H
#define MTPLAN_RUNTIME_BACKEND_MATRIX_CALLS_H

#include <vector>

#include "runtime/backend/matrix_shape.h"
#include "runtime/backend/product_shape.h"

namespace mtplan::runtime {

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

#endif // MTPLAN_RUNTIME_BACKEND_MATRIX_CALLS_H
