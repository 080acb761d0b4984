//===- matrix_shape.h - The shape of a matrix product -----------*- C++ -*-===//
//
// Describes c[m, n] = epilogue(a[m, k] b[k, n] + bias + previous c), for
// `batches` matrices.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_MATRIX_SHAPE_H
#define MTPLAN_RUNTIME_BACKEND_MATRIX_SHAPE_H

#include <cstdint>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

/// Elements to the next row and column; one of them is 1.
struct MatrixSteps {
  std::int64_t row = 0, column = 1;
  std::int64_t batch = 0;             ///< to the next matrix
  std::uint32_t aligned = kAlignment; ///< bytes, of every pointer

  bool operator==(const MatrixSteps &) const = default;
};

/// The function applied to a product's sums before they are stored.
enum class Epilogue {
  none,
  gelu,     ///< by tanh; its argument is stored, too
  geluGrad, ///< times the derivative of gelu at the stored argument
};

/// Names the operand that is also summed over k: a to a vector of m, b to a
/// vector of n.
enum class OperandSum { none, a, b };

struct MatrixShape {
  std::int64_t m = 1, n = 1, k = 1, batches = 1;
  MatrixSteps a, b, c; ///< c's column step is 1
  ElementType inputs = ElementType::f32;
  ElementType result = ElementType::f32; ///< type of the inputs, or f32
  bool biased = false;                   ///< a vector of n of the result's type
  bool adds = false;                     ///< adds to the previous contents
  Epilogue epilogue = Epilogue::none;    ///< of a single product
  /// The sums have the result's type and are stored, whatever `adds` says.
  OperandSum sums = OperandSum::none;
  /// Elements to the bias or sums of the next matrix.
  std::int64_t vectorStep = 0;

  bool operator==(const MatrixShape &) const = default;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MATRIX_SHAPE_H
