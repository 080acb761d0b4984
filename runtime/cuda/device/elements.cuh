//===- elements.cuh - Tensors of any type, eight at once --------*- C++ -*-===//
//
// Kernels compute in float, or in double where an operand is f64. What type a
// tensor has is looked up once per pack: the same for all threads, so it costs
// nothing beside the memory. Packs that are aligned are moved 16 bytes at a
// time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ELEMENTS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ELEMENTS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "runtime/cuda/device/launch.cuh"
#include "runtime/cuda/device/tensor.h"

namespace mtplan::runtime::cuda {

inline constexpr int kPack = 8; ///< 16 bytes of two-byte elements

/// A result as it stands.
inline __host__ __device__ Operand standing(const Result &result) {
  return {result.data, result.type};
}

/// What kernels are given as they are.
template <typename T, int N> struct Several {
  T items[N];
  __host__ __device__ T &operator[](int i) { return items[i]; }
  __host__ __device__ const T &operator[](int i) const { return items[i]; }
};

template <typename R> __device__ R widened(double value) {
  return static_cast<R>(value);
}
template <typename R> __device__ R widened(float value) {
  return static_cast<R>(value);
}
template <typename R> __device__ R widened(__half value) {
  return static_cast<R>(__half2float(value));
}
template <typename R> __device__ R widened(__nv_bfloat16 value) {
  return static_cast<R>(__bfloat162float(value));
}
template <typename R> __device__ R widened(std::int32_t value) {
  return static_cast<R>(value);
}

/// To nearest, ties to even.
template <typename T, typename R> __device__ T narrowed(R value) {
  if constexpr (std::is_same_v<T, __half>) {
    if constexpr (std::is_same_v<R, double>)
      return __double2half(value);
    else
      return __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    if constexpr (std::is_same_v<R, double>)
      return __double2bfloat16(value);
    else
      return __float2bfloat16_rn(value);
  } else {
    return static_cast<T>(value);
  }
}

/// Calls `use` with a null pointer of the type's own C++ type.
template <typename Use> __device__ void withType(ElementType type, Use use) {
  switch (type) {
  case ElementType::f64:
    return use(static_cast<double *>(nullptr));
  case ElementType::f32:
    return use(static_cast<float *>(nullptr));
  case ElementType::f16:
    return use(static_cast<__half *>(nullptr));
  case ElementType::bf16:
    return use(static_cast<__nv_bfloat16 *>(nullptr));
  case ElementType::i32:
    return use(static_cast<std::int32_t *>(nullptr));
  }
}

inline __device__ bool isAligned(const void *data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(uint4) == 0;
}

/// Elements first ... first + count - 1, count <= kPack; the rest become zeros.
template <typename R>
__device__ void load(const Operand &from, std::int64_t first, int count,
                     R (&values)[kPack]) {
  withType(from.type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    const T *data = static_cast<const T *>(from.data) + first;
    if (count == kPack && isAligned(data)) {
      constexpr int kWords = kPack * sizeof(T) / sizeof(uint4);
      uint4 words[kWords];
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        words[w] = reinterpret_cast<const uint4 *>(data)[w];
      T items[kPack];
      memcpy(items, words, sizeof(items));
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        values[i] = widened<R>(items[i]);
      return;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      values[i] = i < count ? widened<R>(data[i]) : R(0);
  });
}

template <typename R>
__device__ void store(const Result &to, std::int64_t first, int count,
                      const R (&values)[kPack]) {
  withType(to.type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    T *data = static_cast<T *>(to.data) + first;
    if (count == kPack && isAligned(data)) {
      T items[kPack];
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        items[i] = narrowed<T>(values[i]);
      constexpr int kWords = kPack * sizeof(T) / sizeof(uint4);
      uint4 words[kWords];
      memcpy(words, items, sizeof(items));
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        reinterpret_cast<uint4 *>(data)[w] = words[w];
      return;
    }
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      if (i < count)
        data[i] = narrowed<T>(values[i]);
  });
}

/// Elements first ... first + count - 1, to `sums`.
template <typename R>
__device__ void addPack(const Operand &from, std::int64_t first, int count,
                        R (&sums)[kPack]) {
  R values[kPack];
  load(from, first, count, values);
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    sums[i] += values[i];
}

/// To what a tensor of the type would hold.
template <typename R>
__device__ void roundTo(ElementType type, R (&values)[kPack]) {
  withType(type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      values[i] = widened<R>(narrowed<T>(values[i]));
  });
}

template <typename R>
__device__ R loadOne(const Operand &from, std::int64_t index) {
  R value = R(0);
  withType(from.type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    value = widened<R>(static_cast<const T *>(from.data)[index]);
  });
  return value;
}

template <typename R>
__device__ void storeOne(const Result &to, std::int64_t index, R value) {
  withType(to.type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    static_cast<T *>(to.data)[index] = narrowed<T>(value);
  });
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ELEMENTS_CUH
