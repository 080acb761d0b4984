//===- elements.cuh - Elements of any type, in packs of eight ---*- C++ -*-===//
//
// Kernels compute in float, or in double if an operand is f64. They branch on
// the type of a tensor once per pack, which is cheap because all threads take
// the same branch. Aligned packs are loaded and stored 16 bytes at a time.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ELEMENTS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ELEMENTS_CUH

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "runtime/cuda/device/launch.cuh"
#include "runtime/cuda/device/tensor.h"

namespace mtplan::runtime::cuda {

inline constexpr int kPack = 8; ///< elements of a pack (16 bytes in bf16)

/// Returns a / b of two numbers that are not negative.
inline __device__ std::int64_t quotient(std::int64_t a, std::int64_t b) {
  // Division is faster in 32 bits.
  return (a | b) >> 32 == 0
             ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b)
             : a / b;
}

/// Returns an operand that reads the current values of a result.
inline __host__ __device__ Operand standing(const Result &result) {
  return {result.data, result.type};
}

/// Holds an array that is passed to kernels by value.
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

/// Rounds to the nearest value of T, ties to even, or toward zero if T is an
/// integer type.
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

/// Calls `use` with a null pointer to the C++ type of `type`.
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

/// Returns whether all types are bf16. If a kernel sets the types of its
/// tensors to the constant bf16, the compiler removes the kernel's branches on
/// types.
template <typename... Types> constexpr bool areBf16(Types... types) {
  return ((types == ElementType::bf16) && ...);
}

/// Loads elements [first, first + count), count <= kPack, and sets the rest of
/// `values` to zero.
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

/// Loads several packs like load(); a pack may be empty. The loads overlap in
/// time, unless a pack is short or not aligned.
template <typename R, int Packs>
__device__ void
loadPacks(const Operand &from, const std::int64_t (&firsts)[Packs],
          const int (&counts)[Packs], R (&values)[Packs][kPack]) {
  withType(from.type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    const T *data = static_cast<const T *>(from.data);
    // Kernels that compute in float have no f64 operands.
    bool areWhole = sizeof(T) <= sizeof(R);
#pragma unroll
    for (int p = 0; p < Packs; ++p)
      areWhole &=
          counts[p] == 0 || (counts[p] == kPack && isAligned(data + firsts[p]));
    if (!areWhole) {
#pragma unroll
      for (int p = 0; p < Packs; ++p)
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          values[p][i] = i < counts[p] ? widened<R>(data[firsts[p] + i]) : R(0);
      return;
    }
    constexpr int kWords = kPack * sizeof(T) / sizeof(uint4);
    uint4 words[Packs][kWords] = {};
#pragma unroll
    for (int p = 0; p < Packs; ++p)
      if (counts[p] > 0)
#pragma unroll
        for (int w = 0; w < kWords; ++w)
          words[p][w] = reinterpret_cast<const uint4 *>(data + firsts[p])[w];
    T items[Packs][kPack];
    memcpy(items, words, sizeof(items));
#pragma unroll
    for (int p = 0; p < Packs; ++p)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        values[p][i] = widened<R>(items[p][i]);
  });
}

/// Holds a pack in the element type of its tensor, so that a thread can begin
/// several loads before it waits for the first. The tensor is not f64 if R is
/// float.
template <typename R> struct HeldPack {
  static constexpr int kWords = kPack * sizeof(R) / sizeof(uint4);
  uint4 words[kWords] = {};

  /// Loads like mtplan::runtime::cuda::load(), but does not wait for a whole,
  /// aligned pack.
  __device__ void load(const Operand &from, std::int64_t first, int count) {
    const std::int64_t size = bytesOf(from.type);
    const char *data = static_cast<const char *>(from.data) + first * size;
    if (count == kPack && isAligned(data)) {
#pragma unroll
      for (int w = 0; w < kWords; ++w)
        if (w == 0 || w * std::int64_t{sizeof(uint4)} < kPack * size)
          words[w] = reinterpret_cast<const uint4 *>(data)[w];
      return;
    }
    withType(from.type, [&](auto *tag) {
      using T = std::remove_pointer_t<decltype(tag)>;
      if constexpr (sizeof(T) <= sizeof(R)) {
        T items[kPack];
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          items[i] = i < count ? reinterpret_cast<const T *>(data)[i] : T();
        memcpy(words, items, sizeof(items));
      }
    });
  }

  template <typename T> __device__ void widenAs(R (&values)[kPack]) const {
    if constexpr (sizeof(T) <= sizeof(R)) {
      T items[kPack];
      memcpy(items, words, sizeof(items));
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        values[i] = widened<R>(items[i]);
    }
  }
  __device__ void widen(ElementType type, R (&values)[kPack]) const {
    withType(type, [&](auto *tag) {
      widenAs<std::remove_pointer_t<decltype(tag)>>(values);
    });
  }
};

/// Loads a pack of each operand like load(). The loads overlap in time, unless
/// a pack is short or not aligned.
template <typename R, int Count>
__device__ void loadTogether(const Several<Operand, Count> &from,
                             std::int64_t first, int count,
                             R (&values)[Count][kPack]) {
  HeldPack<R> held[Count];
  bool areAlike = true;
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    held[i].load(from[i], first, count);
    areAlike &= from[i].type == from[0].type;
  }
  if (areAlike) // one branch for all operands
    return withType(from[0].type, [&](auto *tag) {
      using T = std::remove_pointer_t<decltype(tag)>;
#pragma unroll
      for (int i = 0; i < Count; ++i)
        held[i].template widenAs<T>(values[i]);
    });
#pragma unroll
  for (int i = 0; i < Count; ++i)
    held[i].widen(from[i].type, values[i]);
}

/// Stores elements [first, first + count), count <= kPack.
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

template <typename R>
__device__ void addPack(const Operand &from, std::int64_t first, int count,
                        R (&sums)[kPack]) {
  R values[kPack];
  load(from, first, count, values);
#pragma unroll
  for (int i = 0; i < kPack; ++i)
    sums[i] += values[i];
}

/// Rounds values like a store to a tensor of `type`.
template <typename R>
__device__ void roundTo(ElementType type, R (&values)[kPack]) {
  withType(type, [&](auto *tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    if constexpr (std::is_same_v<T, __nv_bfloat16> &&
                  std::is_same_v<R, float>) {
      // One instruction rounds two values.
#pragma unroll
      for (int i = 0; i < kPack; i += 2) {
        const __nv_bfloat162 two =
            __floats2bfloat162_rn(values[i], values[i + 1]);
        values[i] = widened<R>(two.x);
        values[i + 1] = widened<R>(two.y);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        values[i] = widened<R>(narrowed<T>(values[i]));
    }
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

/// Returns the number of elements in the pack that begins at column `first` of
/// a row of `width` elements.
inline __host__ __device__ int packAt(std::int64_t first, std::int64_t width) {
  return width - first < kPack ? static_cast<int>(width - first) : kPack;
}

/// Returns the number of threads for a row: one per pack, rounded up to full
/// warps, and at most `most`.
inline unsigned threadsOfRow(std::int64_t width, unsigned most) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(
      blocksFor(blocksFor(width, kPack), kWarp) * kWarp, kWarp, most));
}

/// Calls `use(first, count)` for this thread's packs of a row.
template <typename Use>
__device__ void packsOfRow(std::int64_t width, Use use) {
  for (std::int64_t first = std::int64_t{threadIdx.x} * kPack; first < width;
       first += std::int64_t{blockDim.x} * kPack)
    use(first, packAt(first, width));
}

/// Calls `use(first, count, values)` for this thread's packs of a row that
/// begins at element `start`. Loads two packs at a time.
template <typename R, typename Use>
__device__ void loadedPacksOfRow(const Operand &from, std::int64_t start,
                                 std::int64_t width, Use use) {
  const std::int64_t apart = std::int64_t{blockDim.x} * kPack;
  for (std::int64_t first = std::int64_t{threadIdx.x} * kPack; first < width;
       first += 2 * apart) {
    const std::int64_t next = first + apart;
    const int counts[] = {packAt(first, width),
                          next < width ? packAt(next, width) : 0};
    R values[2][kPack];
    loadPacks(from, {start + first, start + next}, counts, values);
    use(first, counts[0], values[0]);
    if (next < width)
      use(next, counts[1], values[1]);
  }
}

/// Describes the pack that begins at column `first` of a row.
struct RowPack {
  std::int64_t row, first;
  int count;
};

/// Returns the pack of this thread in a grid of one thread per pack. Threads
/// beyond the last pack receive a row beyond the last row.
inline __device__ RowPack packOfThread(std::int64_t width) {
  const std::int64_t packs = (width + kPack - 1) / kPack;
  const std::int64_t pack = threadOfGrid();
  const std::int64_t first = pack % packs * kPack;
  return {pack / packs, first, packAt(first, width)};
}

inline Grid gridOfPacks(std::int64_t rows, std::int64_t width) {
  return gridOf(rows * blocksFor(width, kPack));
}

/// Selects the rows that gatherRows adds. A negative index means no row.
struct SourceRows {
  std::int64_t first = -1, second = -1;
};

/// Computes each row of the result: the sum of one row of `first` and one row
/// of `second`, both selected by `source(row)`. The result row is zero if no
/// row is selected. A thread processes a pack.
template <typename R, typename Source>
__global__ void gatherRows(Operand first, Operand second, Result to,
                           std::int64_t rows, std::int64_t width,
                           Source source) {
  const auto [row, h, count] = packOfThread(width);
  if (row >= rows)
    return;
  const SourceRows from = source(row);
  R sum[kPack] = {}, other[kPack];
  if (from.first >= 0)
    load(first, from.first * width + h, count, sum);
  if (from.second >= 0) {
    load(second, from.second * width + h, count, other);
    // Adding 0 to a single addend would turn -0 into +0.
    for (int i = 0; i < kPack; ++i)
      sum[i] = from.first >= 0 ? sum[i] + other[i] : other[i];
  }
  store(to, row * width + h, count, sum);
}

/// \param second  may have no data if `source` never returns a second row
template <typename R, typename Source>
void gather(cudaStream_t stream, const Operand &first, const Operand &second,
            const Result &to, std::int64_t rows, std::int64_t width,
            const Source &source) {
  launch(stream, gridOfPacks(rows, width), gatherRows<R, Source>, first, second,
         to, rows, width, source);
}

// A kernel launch takes some microseconds, so one kernel processes many small
// tensors. A table in device memory holds, for each block, the tensor and the
// piece of the tensor that the block processes.

struct Share {
  std::int32_t tensor, piece;
};

/// Lists the tensors of a kernel, and the work of each block.
/// \tparam Item describes a tensor and has a member `elements`
template <typename Item> struct TensorList {
  const Item *items;
  const Share *shares; ///< one per block
  std::int64_t blocks;
};

/// Sets the number of threads per block.
inline constexpr unsigned kListThreads = 256;
/// Sets the number of packs of a piece that a thread processes.
inline constexpr std::int64_t kListPacks = 8;
/// Sets the number of elements per piece; the last piece of a tensor may have
/// fewer elements.
inline constexpr std::int64_t kListPiece = kListThreads * kListPacks * kPack;

template <typename Use>
__device__ void packsOfPiece(std::int64_t piece, std::int64_t elements,
                             Use use) {
  for (std::int64_t pack = 0; pack < kListPacks; ++pack) {
    const std::int64_t first =
        piece * kListPiece +
        (pack * kListThreads + std::int64_t{threadIdx.x}) * kPack;
    if (first >= elements)
      break;
    use(first, packAt(first, elements));
  }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ELEMENTS_CUH
