//===- matrix_product.h - Matrix products by cuBLASLt -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_MATRIX_PRODUCT_H
#define MTPLAN_RUNTIME_CUDA_DEVICE_MATRIX_PRODUCT_H

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <tuple>
#include <utility>

#include <cublasLt.h>

#include "runtime/backend/matrix_shape.h"
#include "runtime/cuda/device_error.h"

namespace mtplan::runtime::cuda {

/// Limits the workspace of a product in bytes. NVIDIA recommends this size for
/// Hopper.
inline constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

inline void checkProduct(cublasStatus_t status, const char *call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError(std::string(call) + ": " +
                      cublasLtGetStatusString(status));
}
#define MTPLAN_CUBLAS(call) checkProduct((call), #call)

inline cudaDataType_t dataType(ElementType type) {
  switch (type) {
  case ElementType::f64:
    return CUDA_R_64F;
  case ElementType::f16:
    return CUDA_R_16F;
  case ElementType::bf16:
    return CUDA_R_16BF;
  case ElementType::f32:
  case ElementType::i32:
    break;
  }
  return CUDA_R_32F;
}

template <typename Handle, cublasStatus_t (*destroy)(Handle)> class Owned {
public:
  Owned() = default;
  ~Owned() {
    if (handle)
      destroy(handle);
  }
  Owned(Owned &&) = delete;
  Owned &operator=(Owned &&) = delete;

  Handle handle = nullptr;
};

using Library = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Description = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Preference =
    Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <typename T>
void set(const Layout &layout, cublasLtMatrixLayoutAttribute_t what, T value) {
  MTPLAN_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout.handle, what, &value,
                                                 sizeof(value)));
}
template <typename T>
void set(const Description &product, cublasLtMatmulDescAttributes_t what,
         T value) {
  MTPLAN_CUBLAS(cublasLtMatmulDescSetAttribute(product.handle, what, &value,
                                               sizeof(value)));
}
template <typename T>
void set(const Preference &preference,
         cublasLtMatmulPreferenceAttributes_t what, T value) {
  MTPLAN_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference.handle, what,
                                                     &value, sizeof(value)));
}

/// Describes a row-major matrix as its transpose in column-major order. A
/// matrix with contiguous columns is described as it is.
/// \return whether cuBLASLt must transpose the described matrix
inline bool describe(Layout &layout, ElementType type, const MatrixSteps &steps,
                     std::int64_t rows, std::int64_t columns,
                     std::int64_t batches) {
  const bool turned = columns > 1 && steps.column != 1;
  // cuBLASLt checks this stride even if there is a single row or column.
  const std::int64_t lead =
      std::max(turned ? steps.column : steps.row, turned ? rows : columns);
  MTPLAN_CUBLAS(cublasLtMatrixLayoutCreate(
      &layout.handle, dataType(type),
      static_cast<std::uint64_t>(turned ? rows : columns),
      static_cast<std::uint64_t>(turned ? columns : rows), lead));
  if (batches > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
        static_cast<std::int32_t>(batches));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, steps.batch);
  }
  return turned;
}

struct MatrixOperands {
  const void *a, *b;
  const void *bias;
  void *c;
  const void *before = nullptr; ///< the addend; null: the contents of c
  /// Points to the argument of gelu, in the layout of c. Epilogue::gelu writes
  /// the argument, and Epilogue::geluGrad reads it.
  const void *kept = nullptr;
  void *sums = nullptr; ///< receives the bias gradient
};

/// Computes products of one shape by an algorithm that cuBLASLt chooses at
/// construction. Algorithms whose order of summation over k depends on timing
/// are excluded, so that equal calls return equal bits. cuBLASLt is
/// column-major, so it computes the transposed product c'[n, m] = b'[n, k]
/// a'[k, m].
class MatrixProduct {
public:
  MatrixProduct(const Library &rank, const MatrixShape &shape);

  /// Returns why the device does not support the product, or an empty text.
  const std::string &fault() const { return whyNot; }
  /// Returns the size of run()'s `scratch` in bytes.
  std::size_t workspaceBytes() const { return workspace; }
  void run(cudaStream_t stream, const MatrixOperands &operands,
           void *scratch) const;

private:
  void setEpilogue();

  const Library &library;
  const MatrixShape shape;
  Description product;
  Layout aLayout, bLayout, cLayout;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace = 0;
  std::string whyNot;
};

/// Holds the products of a rank. cuBLASLt chooses an algorithm once per shape,
/// even if many layers have that shape.
class MatrixProducts {
public:
  MatrixProducts() { MTPLAN_CUBLAS(cublasLtCreate(&library.handle)); }

  /// Returns the product of a shape, or null if the device does not support it.
  /// The pointer stays valid. A call takes time linear in the number of shapes.
  const MatrixProduct *find(const MatrixShape &shape) {
    const MatrixProduct &product = asked(shape);
    return product.fault().empty() ? &product : nullptr;
  }
  /// Returns the product of a shape.
  /// \throws DeviceError with the shape if the device does not support it
  const MatrixProduct &of(const MatrixShape &shape) {
    const MatrixProduct &product = asked(shape);
    if (!product.fault().empty())
      throw DeviceError(product.fault());
    return product;
  }

private:
  const MatrixProduct &asked(const MatrixShape &shape) {
    for (const auto &[is, product] : made)
      if (is == shape)
        return product;
    return made
        .emplace_back(std::piecewise_construct, std::forward_as_tuple(shape),
                      std::forward_as_tuple(library, shape))
        .second;
  }

  Library library;
  std::deque<std::pair<MatrixShape, MatrixProduct>> made;
};

inline MatrixProduct::MatrixProduct(const Library &rank,
                                    const MatrixShape &theShape)
    : library(rank), shape(theShape) {
  const bool isDouble = shape.inputs == ElementType::f64;
  MTPLAN_CUBLAS(cublasLtMatmulDescCreate(
      &product.handle, isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
      isDouble ? CUDA_R_64F : CUDA_R_32F));
  const bool aTurned =
      describe(aLayout, shape.inputs, shape.a, shape.m, shape.k, shape.batches);
  const bool bTurned =
      describe(bLayout, shape.inputs, shape.b, shape.k, shape.n, shape.batches);
  describe(cLayout, shape.result, shape.c, shape.m, shape.n, shape.batches);
  const auto turn = [](bool turned) {
    return static_cast<std::int32_t>(turned ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  set(product, CUBLASLT_MATMUL_DESC_TRANSA, turn(bTurned));
  set(product, CUBLASLT_MATMUL_DESC_TRANSB, turn(aTurned));
  setEpilogue();
  Preference preference;
  MTPLAN_CUBLAS(cublasLtMatmulPreferenceCreate(&preference.handle));
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      std::uint64_t{kWorkspaceBytes});
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.b.aligned);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.a.aligned);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.c.aligned);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.c.aligned);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library.handle, product.handle, bLayout.handle, aLayout.handle,
      cLayout.handle, cLayout.handle, preference.handle, 1, &best, &found);
  // If the search failed, the other members of `best` are undefined.
  if (status != CUBLAS_STATUS_SUCCESS || found == 0 ||
      best.state != CUBLAS_STATUS_SUCCESS)
    whyNot = "cuBLASLt has no product of " + std::to_string(shape.m) + " x " +
             std::to_string(shape.n) + " x " + std::to_string(shape.k) +
             " in a batch of " + std::to_string(shape.batches) + ": " +
             cublasLtGetStatusString(status);
  algorithm = best.algo;
  workspace = best.workspaceSize;
}

inline void MatrixProduct::setEpilogue() {
  // cuBLASLt may reject a null pointer, so a dummy address is set. run()
  // replaces the address before the memory is read.
  alignas(kAlignment) static const char kSomewhere = 0;
  const void *const somewhere = &kSomewhere;
  cublasLtEpilogue_t epilogue =
      shape.biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (shape.epilogue == Epilogue::gelu)
    epilogue = shape.biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                            : CUBLASLT_EPILOGUE_GELU_AUX;
  if (shape.epilogue == Epilogue::geluGrad)
    epilogue = CUBLASLT_EPILOGUE_DGELU;
  // Operand A of cuBLASLt is operand b of the product.
  if (shape.sums != OperandSum::none)
    epilogue = shape.sums == OperandSum::b ? CUBLASLT_EPILOGUE_BGRADA
                                           : CUBLASLT_EPILOGUE_BGRADB;
  set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (shape.biased || shape.sums != OperandSum::none) {
    set(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        static_cast<std::int32_t>(dataType(shape.result)));
    set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, somewhere);
    if (shape.vectorStep != 0)
      set(product, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, shape.vectorStep);
  }
  if (shape.epilogue == Epilogue::none)
    return;
  set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.c.row);
  set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, somewhere);
}

inline void MatrixProduct::run(cudaStream_t stream,
                               const MatrixOperands &operands,
                               void *scratch) const {
  if (shape.biased)
    set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (shape.sums != OperandSum::none)
    set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.sums);
  if (shape.epilogue != Epilogue::none)
    set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.kept);
  const double oneDouble = 1.0, noDouble = 0.0;
  const float one = 1.0F, none = 0.0F;
  const bool isDouble = shape.inputs == ElementType::f64;
  const void *alpha = isDouble ? static_cast<const void *>(&oneDouble) : &one;
  const void *zero = isDouble ? static_cast<const void *>(&noDouble) : &none;
  MTPLAN_CUBLAS(cublasLtMatmul(
      library.handle, product.handle, alpha, operands.b, bLayout.handle,
      operands.a, aLayout.handle, shape.adds ? alpha : zero,
      operands.before ? operands.before : operands.c, cLayout.handle,
      operands.c, cLayout.handle, &algorithm, scratch, workspace, stream));
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_MATRIX_PRODUCT_H
