//===- products.cuh - Matrix products of a stand-alone program --*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_STANDALONE_PRODUCTS_CUH
#define MTPLAN_RUNTIME_CUDA_STANDALONE_PRODUCTS_CUH

#include "runtime/cuda/device/addend.cuh"
#include "runtime/cuda/standalone/rank.cuh"

namespace mtplan::runtime::cuda {

/// Applies bias, addend and epilogue to a bare product, in separate kernels.
/// \param sums  the bare product [batches][m][n], contiguous like c; is
/// overwritten
/// \param operands  the operands of the complete product
template <typename R>
void finish(const Run &now, const MatrixShape &shape, const Tensor &sums,
            const MatrixOperands &operands) {
  const std::int64_t elements = shape.batches * shape.m * shape.n;
  const Tensor c{operands.c, shape.result},
      kept{const_cast<void *>(operands.kept), shape.result};
  if (shape.biased)
    addRow<R>(now.stream(), sums, {operands.bias, shape.result}, shape.n, sums,
              elements);
  if (shape.adds)
    ofEach<R>(now, EachSum(), elements, sums, sums,
              Tensor{operands.before ? const_cast<void *>(operands.before)
                                     : operands.c,
                     shape.result});
  switch (shape.epilogue) {
  case Epilogue::none:
    ofEach<R>(now, EachSame(), elements, c, sums);
    break;
  case Epilogue::gelu:
    ofEach<R>(now, EachSame(), elements, kept, sums);
    ofEach<R>(now, Activated{Activation::geluTanh}, elements, c, sums);
    break;
  case Epilogue::geluGrad:
    ofEach<R>(now, ActivatedGrad{Activation::geluTanh}, elements, c, kept,
              sums);
    break;
  }
}

/// Returns the shape without bias, addend and epilogue. The result is
/// contiguous, and is f64 or f32: bias, addend and epilogue are computed in
/// this type.
inline MatrixShape bareOf(MatrixShape shape) {
  shape.biased = shape.adds = false;
  shape.epilogue = Epilogue::none;
  if (shape.result != ElementType::f64)
    shape.result = ElementType::f32;
  shape.c = {shape.n, 1, shape.m * shape.n};
  return shape;
}

/// Returns whether the results of a batch are not contiguous, or each has a
/// bias of its own. If cuBLASLt has no algorithm for such a batch, the products
/// of the batch are computed one by one.
inline bool isSpread(const MatrixShape &shape) {
  return shape.batches > 1 && (shape.c.batch != shape.m * shape.n ||
                               (shape.biased && shape.vectorStep != 0));
}

/// Returns the shape of one product of the batch.
inline MatrixShape singleOf(MatrixShape shape) {
  shape.batches = 1;
  shape.a.batch = shape.b.batch = shape.c.batch = shape.vectorStep = 0;
  return shape;
}

inline MatrixShape withoutSum(MatrixShape shape) {
  shape.sums = OperandSum::none;
  shape.vectorStep = 0;
  return shape;
}

/// Returns the number of elements in an operand's sum over k, for one product
/// of the batch.
inline std::int64_t sumsOf(const MatrixShape &shape) {
  return shape.sums == OperandSum::a ? shape.m : shape.n;
}

/// Returns the shape with which cuBLASLt computes a product and an operand's
/// sum. cuBLASLt overwrites sums. Sums that have to be accumulated are
/// therefore first written to scratch memory, one aligned sum per product.
inline MatrixShape withStoredSum(MatrixShape shape) {
  if (shape.adds && shape.batches > 1)
    shape.vectorStep =
        static_cast<std::int64_t>(roundedUp(
            static_cast<std::size_t>(sumsOf(shape) * bytesOf(shape.result)))) /
        bytesOf(shape.result);
  return shape;
}

/// Makes cuBLASLt choose the algorithms that `multiply` and `multiplyAndSum`
/// need for a shape. The function must be called before the step is captured:
/// cuBLASLt does not document that a choice is possible during a capture, and
/// the choice failed in CUDA 13.3.
inline void choose(Rank &rank, const MatrixShape &shape) {
  if (shape.sums != OperandSum::none) {
    if (!rank.products->find(withStoredSum(shape)))
      choose(rank, withoutSum(shape));
    return;
  }
  if (rank.products->find(shape))
    return;
  if (isSpread(shape))
    choose(rank, singleOf(shape));
  else
    rank.products->find(bareOf(shape));
}

/// Implements `multiply` if cuBLASLt supports only the bare product. The result
/// is rounded after the epilogue.
/// \throws DeviceError without a bare product, or if c is not contiguous
inline void multiplyAndFinish(const Run &now, const MatrixShape &shape,
                              const MatrixOperands &operands) {
  const bool isBare =
      !shape.biased && !shape.adds && shape.epilogue == Epilogue::none;
  const bool isContiguous =
      (shape.m == 1 || shape.c.row == shape.n) &&
      (shape.batches == 1 || shape.c.batch == shape.m * shape.n);
  MatrixProducts &products = *now.rank.products;
  if (isBare || !isContiguous)
    products.of(shape); // throws DeviceError
  const MatrixShape bare = bareOf(shape);
  const bool isDouble = shape.result == ElementType::f64;
  const MatrixProduct &product = products.of(bare);
  const std::size_t room = roundedUp(product.workspaceBytes());
  const std::int64_t elements = shape.batches * shape.m * shape.n;
  auto *scratch = static_cast<std::byte *>(now.lane().workspace.atLeast(
      room + static_cast<std::size_t>(elements * bytesOf(bare.result))));
  const Tensor sums{scratch + room, bare.result};
  product.run(now.stream(), {operands.a, operands.b, nullptr, sums.data},
              scratch);
  if (isDouble)
    finish<double>(now, shape, sums, operands);
  else
    finish<float>(now, shape, sums, operands);
}

/// Holds the tensors of a product; absent tensors are null.
struct ProductTensors {
  Tensor a, b, bias{}, c;
  Tensor before{}; ///< the addend; null: c itself
  Tensor kept{};   ///< the argument of gelu that an epilogue writes or reads
  Tensor sums{};   ///< the sum of an operand over k: a bias gradient
};

/// Computes c = epilogue(a b + bias + before); the shape determines which of
/// these terms exist.
inline void multiply(const Run &now, const MatrixShape &shape,
                     const ProductTensors &its) {
  const MatrixProduct *product = now.rank.products->find(shape);
  if (!product && isSpread(shape)) {
    const auto moved = [](const Tensor &tensor, std::int64_t elements) {
      return tensor.data ? plus(tensor, elements) : tensor;
    };
    for (std::int64_t i = 0; i < shape.batches; ++i)
      multiply(now, singleOf(shape),
               {.a = plus(its.a, i * shape.a.batch),
                .b = plus(its.b, i * shape.b.batch),
                .bias = moved(its.bias, i * shape.vectorStep),
                .c = plus(its.c, i * shape.c.batch),
                .before = moved(its.before, i * shape.c.batch)});
    return;
  }
  const MatrixOperands operands{its.a.data, its.b.data,      its.bias.data,
                                its.c.data, its.before.data, its.kept.data};
  if (!product)
    return multiplyAndFinish(now, shape, operands);
  product->run(now.stream(), operands,
               now.lane().workspace.atLeast(product->workspaceBytes()));
}

/// Computes c = a b, and sums one operand over k into its.sums (a bias
/// gradient). If shape.adds, the product and the sum are added to earlier
/// contents. One kernel computes the product and the sum if cuBLASLt has such
/// an algorithm.
/// \param sizes  the shape of the operand to sum, [samples][rows][columns]; in
/// a batch, the shape of one product's operand
template <typename R>
void multiplyAndSum(const Run &now, const MatrixShape &shape,
                    const ProductTensors &its, const ColumnSizes &sizes) {
  const MatrixShape whole = withStoredSum(shape);
  const MatrixProduct *both = now.rank.products->find(whole);
  if (!both) {
    multiply(now, withoutSum(shape), {.a = its.a, .b = its.b, .c = its.c});
    const bool isOfA = shape.sums == OperandSum::a;
    const std::int64_t step = isOfA ? shape.a.batch : shape.b.batch;
    for (std::int64_t i = 0; i < shape.batches; ++i)
      sum<R>(now.stream(), plus(isOfA ? its.a : its.b, i * step),
             plus(its.sums, i * shape.vectorStep), sizes,
             now.scratch(columnScratch<R>(sizes, 1)), shape.adds);
    return;
  }
  Tensor stored = its.sums;
  if (shape.adds)
    stored.data = now.scratch(
        bytesOf(stored, shape.batches > 1 ? shape.batches * whole.vectorStep
                                          : sizes.columns));
  both->run(now.stream(),
            {its.a.data, its.b.data, nullptr, its.c.data, nullptr, nullptr,
             stored.data},
            now.lane().workspace.atLeast(both->workspaceBytes()));
  for (std::int64_t i = 0; shape.adds && i < shape.batches; ++i) {
    const Tensor own = plus(its.sums, i * shape.vectorStep);
    ofEach<R>(now, EachSum(), sizes.columns, own,
              plus(stored, i * whole.vectorStep), own);
  }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_STANDALONE_PRODUCTS_CUH
