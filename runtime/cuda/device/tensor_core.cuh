//===- tensor_core.cuh - PTX instructions for tensor cores ------*- C++ -*-===//
//
// The functions wrap PTX instructions for compute capability 8.0 and later: a
// warp multiplies 16 x 16 by 16 x 8 elements of 16 bits and accumulates in
// floats, loads 8 x 8 matrices from shared memory in the layout of the factors,
// and copies to shared memory asynchronously. All lanes of a warp must call
// multiplyAdd, loadMatrices and transposedPair together.
//
// Lane l holds, with g = l / 4 and t = l % 4, these elements [row][column] (PTX
// ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"). Braces
// enclose the two elements of one register; ", +1" stands for the second
// element, whose index is larger by 1:
//   left   16 x 16: {[g][2t, +1]}, {[g + 8][2t, +1]},
//                   {[g][2t + 8, +1]}, {[g + 8][2t + 8, +1]}
//   right  16 x 8:  {[2t, +1][g]}, {[2t + 8, +1][g]}
//   sums   16 x 8:  [g][2t], [g][2t + 1], [g + 8][2t], [g + 8][2t + 1]
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_CORE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_CORE_CUH

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Builds for the host define this macro and emulate the functions.
#if !defined(MTPLAN_EMULATED_TENSOR_CORES)

namespace mtplan::runtime::cuda {

inline __device__ std::uint32_t sharedAddress(const void *data) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(data));
}

/// Adds left x right to `sums`; T is __half or __nv_bfloat16.
template <typename T>
__device__ __forceinline__ void
multiplyAdd(float (&sums)[4], const std::uint32_t (&left)[4],
            std::uint32_t right0, std::uint32_t right1) {
  if constexpr (std::is_same_v<T, __half>)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]),
                   "r"(right0), "r"(right1));
  else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};\n"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]),
                   "r"(right0), "r"(right1));
}

/// Loads four 8 x 8 matrices of 16-bit elements from shared memory. Row r of
/// matrix m is the 16 bytes at the `row` that lane 8m + r passes. A lane
/// receives elements [g][2t, +1] of each matrix, or [2t, +1][g] if Transposed.
template <bool Transposed>
__device__ __forceinline__ void loadMatrices(std::uint32_t (&matrices)[4],
                                             const void *row) {
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]),
                   "=r"(matrices[3])
                 : "r"(sharedAddress(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                 "{%0, %1, %2, %3}, [%4];\n"
                 : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]),
                   "=r"(matrices[3])
                 : "r"(sharedAddress(row))
                 : "memory");
}

/// Transposes an 8 x 8 matrix of 16-bit elements in registers: a lane passes
/// elements [g][2t, +1], and receives elements [2t, +1][g].
__device__ __forceinline__ std::uint32_t transposedPair(std::uint32_t pair) {
  std::uint32_t made;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\n"
               : "=r"(made)
               : "r"(pair));
  return made;
}

/// Begins the asynchronous copy of Bytes bytes (8 or 16) to shared memory. Both
/// addresses must be multiples of Bytes. If `there` is false, zeros are
/// written, but `from` must be a valid address.
template <int Bytes>
__device__ __forceinline__ void beginCopy(void *to, const void *from,
                                          bool there) {
  const std::uint32_t bytes = there ? Bytes : 0;
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(
                     sharedAddress(to)),
                 "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(
                     sharedAddress(to)),
                 "l"(from), "n"(Bytes), "r"(bytes)
                 : "memory");
}

/// Waits until all copies of this thread are complete. Other threads may read
/// the copied data after a barrier.
__device__ __forceinline__ void endCopies() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

/// Returns an approximation of 2^x, or 0 if 2^x is below all normal floats.
__device__ __forceinline__ float powerOfTwo(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(x));
  return power;
}

/// Sets `low` to zero if the low half of `word` is below the low half of
/// `limits`, and `high` to zero if the high half of `word` is below the high
/// half of `limits`. Halves are compared as f16 without sign; NaN is larger
/// than any limit.
__device__ __forceinline__ void
zeroBelow(std::uint32_t word, std::uint32_t limits, float &low, float &high) {
  asm("{\n"
      ".reg .pred low, high;\n"
      ".reg .b32 number;\n"
      "abs.f16x2 number, %2;\n"
      "setp.geu.f16x2 low|high, number, %3;\n"
      "selp.f32 %0, %0, 0f00000000, low;\n"
      "selp.f32 %1, %1, 0f00000000, high;\n"
      "}\n"
      : "+f"(low), "+f"(high)
      : "r"(word), "r"(limits));
}

/// Returns the dynamic shared memory (Grid::shared), aligned to 16 bytes.
__device__ __forceinline__ void *launchedMemory() {
  extern __shared__ uint4 mtplanLaunchedMemory[];
  return mtplanLaunchedMemory;
}

} // namespace mtplan::runtime::cuda

#endif // no emulated tensor cores

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_TENSOR_CORE_CUH
