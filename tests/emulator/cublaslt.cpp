//===- cublaslt.cpp - cuBLASLt emulated on the host -----------------------===//
//
// Implements the functions of cuBLASLt that runtime/cuda calls, by plain loops.
// Products follow the library's manual, so that wrong layouts and strides
// change the results.
//
//===----------------------------------------------------------------------===//

#include "tests/emulator/cublaslt.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <cublasLt.h>

#include "runtime/backend/element.h"
#include "tests/emulator/machine.h"

namespace {

thread_local mtplan::emulator::ProductCalls calls;

/// Counts refusals of a kind of epilogue, which the process refuses if an
/// environment variable is set.
class Refusal {
public:
  explicit Refusal(const char *theVariable)
      : variable(theVariable), requested(std::getenv(variable) != nullptr) {}
  Refusal(const Refusal &) = delete;
  Refusal &operator=(const Refusal &) = delete;
  // Ends the process with an error if the variable is set but no product was
  // refused, because the test then tests nothing.
  ~Refusal() {
    if (!requested || refused > 0)
      return;
    std::cerr << variable << ": nothing was refused" << std::endl;
    std::fflush(nullptr);
    std::_Exit(EXIT_FAILURE);
  }

  bool isRequested() const { return requested; }
  /// Counts a refusal if `does`, and returns `does`.
  bool count(bool does) {
    refused += does;
    return does;
  }

private:
  const char *variable;
  const bool requested;
  std::atomic<int> refused = 0;
};

Refusal biasRefusal("MTPLAN_REFUSED_BIASES"), sumRefusal("MTPLAN_REFUSED_SUMS"),
    geluRefusal("MTPLAN_REFUSED_GELUS");
thread_local bool refusesBiases = biasRefusal.isRequested();
thread_local bool refusesSums = sumRefusal.isRequested();

using mtplan::runtime::ElementType;

struct FakeLayout {
  ElementType type;
  std::int64_t rows, columns, lead;
  std::int32_t batches = 1;
  std::int64_t batchStep = 0;
};

struct FakeProduct {
  bool isDouble;
  std::int32_t turnsA = CUBLAS_OP_N, turnsB = CUBLAS_OP_N;
  std::int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t biasType = -1; ///< cudaDataType_t; -1: the result's type
  void *bias = nullptr;       ///< the bias or its gradient
  std::int64_t biasStep = 0;  ///< stride between matrices
  void *kept = nullptr;       ///< auxiliary matrix, in the type of the result
  std::int64_t keptLead = 0;
};

/// Holds the alignments of pointers and the workspace that the caller promises,
/// in bytes.
struct FakePreference {
  std::uint32_t a = 256, b = 256, c = 256, d = 256;
  std::uint64_t workspace = 0;
};

/// Holds the alignments that an algorithm was chosen for.
struct FakeAlgorithm {
  FakePreference promised;
  std::uint64_t biasAligned = 1; ///< bytes, when the heuristic was called
};
static_assert(sizeof(FakeAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));
constexpr std::uint64_t kWorkspace = 1000; // bytes

bool isAligned(const void *data, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// Returns the alignment of a pointer in bytes, at most 256; 1 for null.
std::uint64_t alignmentOf(const void *data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uint64_t most = 256, lowest = address & (~address + 1);
  return data ? std::min(most, lowest) : 1;
}

bool addsBias(std::int32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}
bool keeps(std::int32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
         epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

/// Returns whether the epilogue sums a (BGRADA) or b (BGRADB) over k.
bool sums(std::int32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BGRADA ||
         epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

/// Returns tanh(x) with a relative error of up to 2^-11, like the device's tanh
/// instruction.
double approximateTanh(double x) {
  int exponent = 0;
  const double share = std::frexp(std::tanh(x), &exponent);
  return std::ldexp(std::round(std::ldexp(share, 11)), exponent - 11);
}

/// Returns GELU in its tanh form, the only form in cuBLASLt.
double gelu(double x) {
  const double inner = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + approximateTanh(inner));
}
double geluGrad(double x) {
  const double tanh =
      approximateTanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) *
                                  std::sqrt(2.0 / M_PI) *
                                  (1.0 + 3.0 * 0.044715 * x * x);
}

ElementType typeOf(cudaDataType_t type) {
  switch (type) {
  case CUDA_R_64F:
    return ElementType::f64;
  case CUDA_R_16F:
    return ElementType::f16;
  case CUDA_R_16BF:
    return ElementType::bf16;
  default:
    return ElementType::f32;
  }
}

template <typename Fake, typename Handle> Fake &fake(Handle handle) {
  return *reinterpret_cast<Fake *>(handle);
}

template <typename T>
cublasStatus_t take(T &to, const void *from, size_t size) {
  if (size != sizeof(T))
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, size);
  return CUBLAS_STATUS_SUCCESS;
}

/// Reads an element of a column-major matrix or of its transpose (`turned`).
double read(const FakeLayout &layout, const void *data, bool turned,
            std::int64_t row, std::int64_t column, std::int64_t batch) {
  if (turned)
    std::swap(row, column);
  return mtplan::runtime::readElement(
      layout.type, data, batch * layout.batchStep + column * layout.lead + row);
}

bool isWhole(const FakeLayout &layout) {
  return layout.lead >= layout.rows && layout.rows > 0 && layout.columns > 0;
}

} // namespace

const mtplan::emulator::ProductCalls &mtplan::emulator::productCalls() {
  return calls;
}

mtplan::emulator::RefusedBiases::RefusedBiases() { refusesBiases = true; }
mtplan::emulator::RefusedBiases::~RefusedBiases() { refusesBiases = false; }
mtplan::emulator::RefusedSums::RefusedSums() { refusesSums = true; }
mtplan::emulator::RefusedSums::~RefusedSums() { refusesSums = false; }

// Parameters have the names of the library's header.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {

// Calls without a handle fail, and any address serves as a handle.
size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle) {
  static int device = 0;
  ++calls.handles;
  *lightHandle = reinterpret_cast<cublasLtHandle_t>(&device);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t /*lightHandle*/) {
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS         ? "success"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "invalid value"
                                                 : "not supported";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *matLayout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  auto *made = new FakeLayout{typeOf(type), static_cast<std::int64_t>(rows),
                              static_cast<std::int64_t>(cols), ld};
  *matLayout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matLayout) {
  delete &fake<FakeLayout>(matLayout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t matLayout,
                                 cublasLtMatrixLayoutAttribute_t attr,
                                 const void *buf, size_t sizeInBytes) {
  auto &layout = fake<FakeLayout>(matLayout);
  if (attr == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    return take(layout.batches, buf, sizeInBytes);
  if (attr == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    return take(layout.batchStep, buf, sizeInBytes);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *matmulDesc,
                                        cublasComputeType_t computeType,
                                        cudaDataType_t scaleType) {
  const bool isDouble = computeType == CUBLAS_COMPUTE_64F;
  if (isDouble != (scaleType == CUDA_R_64F))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *matmulDesc =
      reinterpret_cast<cublasLtMatmulDesc_t>(new FakeProduct{isDouble});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmulDesc) {
  delete &fake<FakeProduct>(matmulDesc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
                               cublasLtMatmulDescAttributes_t attr,
                               const void *buf, size_t sizeInBytes) {
  auto &product = fake<FakeProduct>(matmulDesc);
  switch (attr) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return take(product.turnsA, buf, sizeInBytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return take(product.turnsB, buf, sizeInBytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return take(product.epilogue, buf, sizeInBytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return take(product.bias, buf, sizeInBytes);
  case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    return take(product.biasStep, buf, sizeInBytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
    return take(product.kept, buf, sizeInBytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
    return take(product.keptLead, buf, sizeInBytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return take(product.biasType, buf, sizeInBytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref) {
  *pref = reinterpret_cast<cublasLtMatmulPreference_t>(new FakePreference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref) {
  delete &fake<FakePreference>(pref);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                     cublasLtMatmulPreferenceAttributes_t attr,
                                     const void *buf, size_t sizeInBytes) {
  auto &preference = fake<FakePreference>(pref);
  std::uint32_t schemes = 0;
  switch (attr) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return take(preference.workspace, buf, sizeInBytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return take(schemes, buf, sizeInBytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    return take(preference.a, buf, sizeInBytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    return take(preference.b, buf, sizeInBytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    return take(preference.c, buf, sizeInBytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return take(preference.d, buf, sizeInBytes);
  default:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

/// Returns one algorithm if the product is supported. Supported types are those
/// combinations in the library's table that mtplan uses.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
    cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
    cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
    int *returnAlgoCount) {
  if (!lightHandle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  // cuBLASLt of CUDA 13.3 fails during capture: "could not obtain green
  // context information" (mudler/vllm.cpp, issue 1732).
  if (mtplan::emulator::openCaptures > 0)
    return CUBLAS_STATUS_INTERNAL_ERROR;
  ++calls.heuristics;
  const auto &product = fake<FakeProduct>(operationDesc);
  const auto &a = fake<FakeLayout>(Adesc), &b = fake<FakeLayout>(Bdesc),
             &c = fake<FakeLayout>(Cdesc), &d = fake<FakeLayout>(Ddesc);
  const auto of = [](const FakeLayout &layout, std::int32_t turns) {
    return turns == CUBLAS_OP_T ? std::pair(layout.columns, layout.rows)
                                : std::pair(layout.rows, layout.columns);
  };
  const auto [m, k] = of(a, product.turnsA);
  const auto [terms, n] = of(b, product.turnsB);
  const bool types = a.type == b.type && c.type == d.type &&
                     product.isDouble == (a.type == ElementType::f64) &&
                     (d.type == a.type || (a.type != ElementType::f64 &&
                                           d.type == ElementType::f32));
  const bool sizes = k == terms && d.rows == m && d.columns == n &&
                     a.batches == d.batches && b.batches == d.batches &&
                     isWhole(a) && isWhole(b) && isWhole(d);
  const bool isDerivative = product.epilogue == CUBLASLT_EPILOGUE_DGELU;
  const bool auxiliary =
      !(keeps(product.epilogue) || isDerivative) ||
      (product.kept && product.keptLead % 8 == 0 && product.keptLead >= m &&
       d.batches == 1 && !product.isDouble);
  const bool epilogue = product.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
                        isDerivative || addsBias(product.epilogue) ||
                        keeps(product.epilogue) || sums(product.epilogue);
  const bool ofGelu = isDerivative || keeps(product.epilogue);
  if (biasRefusal.count(refusesBiases && addsBias(product.epilogue)) ||
      sumRefusal.count(refusesSums && sums(product.epilogue)) ||
      geluRefusal.count(geluRefusal.isRequested() && ofGelu))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  // The operand that is summed must have k as its outer dimension. A batch
  // needs one bias gradient per matrix, so the vectors must not overlap.
  const bool ofA = product.epilogue == CUBLASLT_EPILOGUE_BGRADA;
  const bool summed =
      !sums(product.epilogue) ||
      ((d.batches == 1 || product.biasStep >= (ofA ? m : n)) &&
       (ofA ? product.turnsA == CUBLAS_OP_N : product.turnsB == CUBLAS_OP_T));
  *returnAlgoCount = 0;
  if (!types || !sizes || !auxiliary || !epilogue || !summed ||
      requestedAlgoCount < 1)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *returnAlgoCount = 1;
  const FakeAlgorithm algorithm{fake<FakePreference>(preference),
                                alignmentOf(product.bias)};
  heuristicResultsArray[0].workspaceSize =
      std::min(kWorkspace, algorithm.promised.workspace);
  std::memcpy(&heuristicResultsArray[0].algo, &algorithm, sizeof(algorithm));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
               const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc,
               const void *B, cublasLtMatrixLayout_t Bdesc, const void *beta,
               const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
               cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo,
               void *workspace, size_t workspaceSizeInBytes,
               cudaStream_t stream) {
  if (!lightHandle ||
      mtplan::emulator::checkStreamDevice(stream) != cudaSuccess)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  const FakeProduct product = fake<FakeProduct>(computeDesc);
  const FakeLayout a = fake<FakeLayout>(Adesc), b = fake<FakeLayout>(Bdesc),
                   c = fake<FakeLayout>(Cdesc), d = fake<FakeLayout>(Ddesc);
  FakeAlgorithm algorithm;
  std::memcpy(static_cast<void *>(&algorithm), algo, sizeof(algorithm));
  const FakePreference &promised = algorithm.promised;
  // The auxiliary matrix is accessed 16 bytes at a time.
  const bool keepsAside =
      keeps(product.epilogue) || product.epilogue == CUBLASLT_EPILOGUE_DGELU;
  const bool hasVector = addsBias(product.epilogue) || sums(product.epilogue);
  if (!isAligned(A, promised.a) || !isAligned(B, promised.b) ||
      !isAligned(C, promised.c) || !isAligned(D, promised.d) ||
      !isAligned(workspace, 256) ||
      workspaceSizeInBytes < std::min(kWorkspace, promised.workspace) ||
      (keepsAside && !isAligned(product.kept, 16)) ||
      (hasVector &&
       (!product.bias || !isAligned(product.bias, algorithm.biasAligned))))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto factor = [&](const void *value) {
    return product.isDouble ? *static_cast<const double *>(value)
                            : *static_cast<const float *>(value);
  };
  const double scale = factor(alpha), kept = factor(beta);
  const bool turnsA = product.turnsA == CUBLAS_OP_T;
  const bool turnsB = product.turnsB == CUBLAS_OP_T;
  const std::int64_t terms = turnsA ? a.rows : a.columns;
  const ElementType vectorType =
      product.biasType < 0
          ? d.type
          : typeOf(static_cast<cudaDataType_t>(product.biasType));
  const auto sumOperand = [=](std::int64_t batch) {
    const bool ofA = product.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    for (std::int64_t i = 0; i < (ofA ? d.rows : d.columns); ++i) {
      double sum = 0.0;
      for (std::int64_t k = 0; k < terms; ++k)
        sum += ofA ? read(a, A, turnsA, i, k, batch)
                   : read(b, B, turnsB, k, i, batch);
      mtplan::runtime::writeElement(vectorType, product.bias,
                                    batch * product.biasStep + i, sum);
    }
  };
  const auto multiply = [=] {
    std::memset(workspace, 0xC3, workspaceSizeInBytes);
    // Operand sums are stored: alpha and beta do not apply.
    for (std::int64_t batch = 0; sums(product.epilogue) && batch < d.batches;
         ++batch)
      sumOperand(batch);
    for (std::int64_t batch = 0; batch < d.batches; ++batch)
      for (std::int64_t column = 0; column < d.columns; ++column)
        for (std::int64_t row = 0; row < d.rows; ++row) {
          double sum = 0.0;
          for (std::int64_t k = 0; k < terms; ++k)
            sum += read(a, A, turnsA, row, k, batch) *
                   read(b, B, turnsB, k, column, batch);
          sum *= scale;
          if (kept != 0.0)
            sum += kept * read(c, C, false, row, column, batch);
          // The bias has one number per row of the result.
          if (addsBias(product.epilogue))
            sum += mtplan::runtime::readElement(vectorType, product.bias,
                                                batch * product.biasStep + row);
          const std::int64_t at = column * product.keptLead + row;
          if (keeps(product.epilogue)) {
            mtplan::runtime::writeElement(d.type, product.kept, at, sum);
            sum = gelu(sum);
          }
          if (product.epilogue == CUBLASLT_EPILOGUE_DGELU)
            sum *= geluGrad(
                mtplan::runtime::readElement(d.type, product.kept, at));
          mtplan::runtime::writeElement(
              d.type, D, batch * d.batchStep + column * d.lead + row, sum);
        }
    std::memset(workspace, 0x3C, workspaceSizeInBytes);
  };
  return mtplan::emulator::enqueue(stream, multiply) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // extern "C"
// NOLINTEND(readability-identifier-naming)
