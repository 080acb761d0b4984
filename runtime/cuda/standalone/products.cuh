//===- products.cuh - Products of a rank that stands alone ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_PRODUCTS_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_PRODUCTS_CUH

#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

/// c = epilogue(a b + bias + before), as the shape has it; algorithms are
/// chosen when a shape is first met.
/// \param before  null: c itself
inline void multiply(const Run &now, const MatrixShape &shape, const void *a,
                     const void *b, const void *bias, void *c,
                     const void *before = nullptr, const void *kept = nullptr) {
  const MatrixProduct &product = now.rank.products->of(shape);
  product.run(now.stream(), {a, b, bias, c, before, kept},
              now.lane().workspace.atLeast(product.workspaceBytes()));
}

/// c = a b (+ c, as the shape has it), and the sum of one of the two over k, to
/// `gradient` likewise: beside the product, if the device has such a one.
/// \param summed  that operand, [samples, rows, columns]
template <typename R>
void multiplyAndSum(const Run &now, MatrixShape shape, const void *a,
                    const void *b, void *c, const Tensor &summed,
                    const Tensor &gradient, const ColumnSizes &sizes) {
  const MatrixProduct *both = now.rank.products->find(shape);
  if (!both) {
    shape.sums = OperandSum::none;
    multiply(now, shape, a, b, nullptr, c);
    sum<R>(now.stream(), summed, gradient, sizes,
           now.scratch(columnScratch<R>(sizes, 1)), shape.adds);
    return;
  }
  // The product stores a sum, and never adds to it.
  Tensor stored = gradient;
  if (shape.adds)
    stored.data = now.scratch(bytesOf(gradient, sizes.columns));
  both->run(now.stream(), {a, b, nullptr, c, nullptr, nullptr, stored.data},
            now.lane().workspace.atLeast(both->workspaceBytes()));
  if (shape.adds)
    ofEach<R>(now, EachSum(), sizes.columns, gradient, stored, gradient);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_PRODUCTS_CUH
