//===- matrix_product.cpp - Products of matrices by cuBLASLt --------------===//
//
// cuBLASLt counts down columns; so what it is given is the product turned over,
// c'[n, m] = b'[n, k] a'[k, m], in which rows of ours are columns of its own.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/matrix_product.h"

#include <algorithm>
#include <string>

#include <cublasLt.h>

namespace mtplan::runtime::cuda {

namespace {

/// As much as NVIDIA advises for Hopper.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

void check(cublasStatus_t status, const char *call, int line) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw DeviceError("matrix_product.cpp:" + std::to_string(line) + ": " +
                      call + ": " + cublasLtGetStatusString(status));
}
#define MTPLAN_CUBLAS(call) check((call), #call, __LINE__)

cudaDataType_t dataType(ElementType type) {
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

/// Owns what one of cuBLASLt's pairs of functions makes and destroys.
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

/// A matrix of ours as columns of its own: turned over once by being read down
/// its columns, and again where our rows are not side by side.
/// \return whether it has to be turned over
bool describe(Layout &layout, ElementType type, const MatrixSteps &steps,
              std::int64_t rows, std::int64_t columns, std::int64_t batches) {
  const bool turned = columns > 1 && steps.column != 1;
  // Of one row or column the step to the next is not read, but checked.
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

} // namespace

struct MatrixProduct::State {
  MatrixShape shape;
  Library library;
  Description product;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace = 0;
};

MatrixProduct::MatrixProduct(const MatrixShape &shape,
                             const Context & /*context*/)
    : state(std::make_unique<State>()) {
  State &own = *state;
  own.shape = shape;
  const bool isDouble = shape.inputs == ElementType::f64;
  MTPLAN_CUBLAS(cublasLtCreate(&own.library.handle));
  MTPLAN_CUBLAS(cublasLtMatmulDescCreate(
      &own.product.handle, isDouble ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
      isDouble ? CUDA_R_64F : CUDA_R_32F));
  const bool aTurned =
      describe(own.a, shape.inputs, shape.a, shape.m, shape.k, shape.batches);
  const bool bTurned =
      describe(own.b, shape.inputs, shape.b, shape.k, shape.n, shape.batches);
  describe(own.c, shape.result, shape.c, shape.m, shape.n, shape.batches);
  const auto turn = [](bool turned) {
    return static_cast<std::int32_t>(turned ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  set(own.product, CUBLASLT_MATMUL_DESC_TRANSA, turn(bTurned));
  set(own.product, CUBLASLT_MATMUL_DESC_TRANSB, turn(aTurned));
  if (shape.biased) {
    set(own.product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(own.product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        static_cast<std::int32_t>(dataType(shape.result)));
  }
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
      own.library.handle, own.product.handle, own.b.handle, own.a.handle,
      own.c.handle, own.c.handle, preference.handle, 1, &best, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0)
    throw DeviceError("cuBLASLt has no product of " + std::to_string(shape.m) +
                      " x " + std::to_string(shape.n) + " x " +
                      std::to_string(shape.k) + ", " +
                      std::to_string(shape.batches) +
                      " of them: " + cublasLtGetStatusString(status));
  own.algorithm = best.algo;
  own.workspace = best.workspaceSize;
}

MatrixProduct::~MatrixProduct() = default;
MatrixProduct::MatrixProduct(MatrixProduct &&) noexcept = default;

std::size_t MatrixProduct::workspaceBytes() const { return state->workspace; }

void MatrixProduct::run(const Context &context, const void *a, const void *b,
                        const void *bias, void *c, void *workspace) const {
  const State &own = *state;
  if (own.shape.biased)
    set(own.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const double oneDouble = 1.0, noDouble = 0.0;
  const float one = 1.0F, none = 0.0F;
  const bool isDouble = own.shape.inputs == ElementType::f64;
  const void *alpha = isDouble ? static_cast<const void *>(&oneDouble) : &one;
  const void *zero = isDouble ? static_cast<const void *>(&noDouble) : &none;
  MTPLAN_CUBLAS(cublasLtMatmul(own.library.handle, own.product.handle, alpha, b,
                               own.b.handle, a, own.a.handle,
                               own.shape.adds ? alpha : zero, c, own.c.handle,
                               c, own.c.handle, &own.algorithm, workspace,
                               own.workspace, context.stream().get()));
}

} // namespace mtplan::runtime::cuda
