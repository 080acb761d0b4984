//===- matrix_shape.h - The shape of a matrix product -----------*- C++ -*-===//
//
// The product is c[m, n] = epilogue(a[m, k] b[k, n] + bias + addend), for a
// batch of `batches` matrices. The addend is the previous c or an operand.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_MATRIX_SHAPE_H
#define MTPLAN_RUNTIME_BACKEND_MATRIX_SHAPE_H

#include <cstdint>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Holds strides in elements. If a matrix has more than one column, `row` or
/// `column` is 1.
struct MatrixSteps {
  std::int64_t row = 0, column = 1;
  std::int64_t batch = 0;             ///< from one matrix to the next
  std::uint32_t aligned = kAlignment; ///< alignment of the data in bytes

  bool operator==(const MatrixSteps &) const = default;
};

/// Names the function that is applied to the product before the result is
/// stored.
enum class Epilogue {
  none,
  gelu,     ///< tanh approximation of gelu; also stores gelu's argument
  geluGrad, ///< multiplies by gelu' at the stored argument
};

/// Names the operand that is also summed over k (a bias gradient): a into a
/// vector of m elements, or b into a vector of n.
enum class OperandSum { none, a, b };

struct MatrixShape {
  std::int64_t m = 1, n = 1, k = 1, batches = 1;
  MatrixSteps a, b, c; ///< c.column is 1
  ElementType inputs = ElementType::f32;
  ElementType result = ElementType::f32; ///< the type of the inputs, or f32
  bool biased = false;                   ///< adds n elements of type `result`
  bool adds = false;                     ///< adds the previous c or an operand
  Epilogue epilogue = Epilogue::none;    ///< must be none in a batch
  /// Selects the operand to sum. The sums have the type `result`, and overwrite
  /// the vector of sums even if `adds` is set.
  OperandSum sums = OperandSum::none;
  /// Holds the stride in elements from one matrix's bias or sums to the next.
  std::int64_t vectorStep = 0;

  bool operator==(const MatrixShape &) const = default;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MATRIX_SHAPE_H
