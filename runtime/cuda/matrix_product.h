//===- matrix_product.h - Products of matrices by cuBLASLt ------*- C++ -*-===//
//
// c[m, n] = a[m, k] b[k, n] + before, for `batches` of them. What algorithm is
// best is asked once, when the product is made; of those that add up parts of k
// in the order in which they come to be done, none is taken, so that the same
// call gives the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_MATRIX_PRODUCT_H
#define MTPLAN_RUNTIME_CUDA_MATRIX_PRODUCT_H

#include <cstdint>
#include <memory>

#include "runtime/cuda/context.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime::cuda {

/// Elements to the next row and column; one of them is 1.
struct MatrixSteps {
  std::int64_t row = 0, column = 1;
  std::int64_t batch = 0;             ///< to the next matrix
  std::uint32_t aligned = kAlignment; ///< bytes, of every pointer
};

struct MatrixShape {
  std::int64_t m = 1, n = 1, k = 1, batches = 1;
  MatrixSteps a, b, c; ///< c's column step is 1
  ElementType inputs = ElementType::f32;
  ElementType result = ElementType::f32; ///< the inputs', or f32
  bool biased = false;                   ///< a vector of n of the result's type
  bool adds = false;                     ///< to what is there
};

class MatrixProduct {
public:
  /// \throws DeviceError with the shape if the device has no way to do it
  MatrixProduct(const MatrixShape &shape, const Context &context);
  ~MatrixProduct();
  MatrixProduct(MatrixProduct &&) noexcept;
  MatrixProduct &operator=(MatrixProduct &&) = delete;

  std::size_t workspaceBytes() const;
  /// Queues it.
  void run(const Context &context, const void *a, const void *b,
           const void *bias, void *c, void *workspace) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_MATRIX_PRODUCT_H
