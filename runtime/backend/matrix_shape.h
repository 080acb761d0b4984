//===- matrix_shape.h - Products of matrices in memory ----------*- C++ -*-===//
//
// c[m, n] = epilogue(a[m, k] b[k, n] + bias + before), for `batches` of them.
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

/// What a product's sums go through before they are stored.
enum class Epilogue {
  none,
  gelu,     ///< by tanh; what it is given is stored, too
  geluGrad, ///< times the derivative of the same, of what was stored then
};

/// Which operand's numbers are also summed over k: a's to `m`, b's to `n`.
enum class OperandSum { none, a, b };

struct MatrixShape {
  std::int64_t m = 1, n = 1, k = 1, batches = 1;
  MatrixSteps a, b, c; ///< c's column step is 1
  ElementType inputs = ElementType::f32;
  ElementType result = ElementType::f32; ///< the inputs', or f32
  bool biased = false;                   ///< a vector of n of the result's type
  bool adds = false;                     ///< to what is there, or elsewhere
  Epilogue epilogue = Epilogue::none;    ///< of a single product
  /// Of the result's type; stored, whatever `adds` says.
  OperandSum sums = OperandSum::none;
  /// Of several matrices, elements to the next one's bias or sums.
  std::int64_t vectorStep = 0;

  bool operator==(const MatrixShape &) const = default;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_MATRIX_SHAPE_H
