//===- matrix_product.h - A matrix product by oneDNN ------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_MATRIX_PRODUCT_H
#define MTPLAN_RUNTIME_CPU_MATRIX_PRODUCT_H

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime::cpu {

/// Describes c[m, n] = a[m, k] b[k, n] + bias; the column stride of c is 1.
struct MatrixShape {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t aRow = 0, aColumn = 0; ///< strides in elements
  std::int64_t bRow = 0, bColumn = 0;
  std::int64_t cRow = 0;
  ElementType inputs = ElementType::f32; ///< f32 or bf16
  ElementType result = ElementType::f32;
  bool biased = false; ///< adds n elements of f32
  bool packed = false; ///< b is an output of pack()
};

/// Runs a prepared product on one thread, and accumulates in f32. Up to
/// `threads` threads may run the product concurrently.
class MatrixProduct {
public:
  /// \throws dnnl::error if oneDNN does not support the types on this machine
  MatrixProduct(const MatrixShape &shape, int threads);
  ~MatrixProduct();
  MatrixProduct(MatrixProduct &&) noexcept;
  MatrixProduct &operator=(MatrixProduct &&) noexcept;

  /// Return the bytes of run()'s `scratch` and of a packed b.
  std::size_t scratchBytes() const;
  std::size_t packedBytes() const;

  /// Reorders b into the layout that oneDNN reads fastest.
  void pack(int thread, const void *b, void *packed) const;
  void run(int thread, const void *a, const void *b, const float *bias, void *c,
           void *scratch) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Returns whether oneDNN supports products of bf16 on this machine.
bool multipliesBf16();

/// Computes to[column][row] = from[row][column] for elements of 2 or 4 bytes.
/// `stride` is the row stride of `from` in elements; `to` is dense.
void transpose(ElementType type, const void *from, std::int64_t stride,
               std::int64_t rows, std::int64_t columns, void *to);

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_MATRIX_PRODUCT_H
