//===- norm.cuh - Layer and RMS norms ---------------------------*- C++ -*-===//
//
// A warp processes a narrow row, and a block processes a wide row. The threads
// read the row once and hold it in registers. Exceptions are rows wider than
// kWidestHeldRow and rows that do not consist of whole, aligned packs: such
// rows are read again for each sum and for the result. Rows have fewer than
// 2^31 elements.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH

#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kNormThreads = 512; ///< most threads per block
inline constexpr unsigned kNormRows = 4;      ///< rows per block, one per warp

/// Returns the width in elements of a row with `packs` packs for each thread.
constexpr int widestRow(int packs, unsigned threads) {
  return packs * kPack * static_cast<int>(threads);
}
inline constexpr int kWidestHeldRow = widestRow(4, kNormThreads);

/// Describes the packs of a row that a thread processes: pack number
/// threadIdx.x after column `base`, and every blockDim.x-th pack after this
/// pack.
/// \tparam Whole  whether the row consists of whole, aligned packs
template <bool Whole> struct OwnPacks {
  int width, base = 0;

  __device__ int first(int pack) const {
    return base + widestRow(pack, blockDim.x) +
           static_cast<int>(threadIdx.x) * kPack;
  }
  __device__ int count(int pack) const {
    const int rest = width - first(pack);
    return rest <= 0 ? 0 : Whole || rest > kPack ? kPack : rest;
  }
};

/// Stores 16 bytes at once; nvcc often splits an assignment into four stores.
inline __device__ void storeWords(uint4 *to, const uint4 &words) {
#if defined(__CUDA_ARCH__)
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};\n" ::"l"(to),
               "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
#else
  *to = words;
#endif
}

/// Calls `use(p, values)` for packs p < Packs of the row at element `start`;
/// elements beyond the row are zero. If Whole, all loads begin before the first
/// call.
template <typename R, int Packs, bool Whole, typename Use>
__device__ void eachOwn(const Operand &from, std::int64_t start,
                        const OwnPacks<Whole> &own, Use use) {
  if constexpr (!Whole) {
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      R values[kPack];
      load(from, start + own.first(p), own.count(p), values);
      use(p, values);
    }
  } else {
    withType(from.type, [&](auto *tag) {
      using T = std::remove_pointer_t<decltype(tag)>;
      if constexpr (sizeof(T) <= sizeof(R)) { // R is double if a type is f64
        const T *row = static_cast<const T *>(from.data) + start;
        constexpr int kWords = kPack * sizeof(T) / sizeof(uint4);
        uint4 words[Packs][kWords] = {};
#pragma unroll
        for (int p = 0; p < Packs; ++p)
          if (own.count(p) != 0)
#pragma unroll
            for (int w = 0; w < kWords; ++w)
              words[p][w] =
                  reinterpret_cast<const uint4 *>(row + own.first(p))[w];
#pragma unroll
        for (int p = 0; p < Packs; ++p) {
          T items[kPack];
          memcpy(items, words[p], sizeof(items));
          R values[kPack];
#pragma unroll
          for (int i = 0; i < kPack; ++i)
            values[i] = widened<R>(items[i]);
          use(p, values);
        }
      }
    });
  }
}

template <typename R, int Packs, bool Whole>
__device__ void loadOwn(const Operand &from, std::int64_t start,
                        const OwnPacks<Whole> &own, R (&x)[Packs][kPack]) {
  eachOwn<R, Packs>(from, start, own, [&](int p, const R(&values)[kPack]) {
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      x[p][i] = values[i];
  });
}

template <typename R, int Packs, bool Whole>
__device__ void storeOwn(const Result &to, std::int64_t start,
                         const OwnPacks<Whole> &own,
                         const R (&x)[Packs][kPack]) {
  if constexpr (!Whole) {
#pragma unroll
    for (int p = 0; p < Packs; ++p)
      store(to, start + own.first(p), own.count(p), x[p]);
  } else {
    withType(to.type, [&](auto *tag) {
      using T = std::remove_pointer_t<decltype(tag)>;
      if constexpr (sizeof(T) <= sizeof(R)) {
        T *row = static_cast<T *>(to.data) + start;
#pragma unroll
        for (int p = 0; p < Packs; ++p) {
          T items[kPack];
#pragma unroll
          for (int i = 0; i < kPack; ++i)
            items[i] = narrowed<T>(x[p][i]);
          constexpr int kWords = kPack * sizeof(T) / sizeof(uint4);
          uint4 words[kWords];
          memcpy(words, items, sizeof(items));
          if (own.count(p) != 0)
#pragma unroll
            for (int w = 0; w < kWords; ++w)
              storeWords(reinterpret_cast<uint4 *>(row + own.first(p)) + w,
                         words[w]);
        }
      }
    });
  }
}

/// Returns the sum over the threads of a row, which are a warp or a block.
template <typename R> __device__ R sumOverRow(R value) {
  return blockDim.x == kWarp ? overWarp(value, Plus()) : sumOverBlock(value);
}

/// Computes the layer norm of each row, or the RMS norm if `beta` has no data:
/// (x - mean) / sqrt(mean of (x - mean)^2 + epsilon) * gamma + beta, where an
/// RMS norm has a mean of 0. threadIdx.y selects a row of the block.
/// \tparam Held  whether the row consists of whole packs, at most `Packs` per
///               thread
template <typename R, int Packs, bool Held>
__global__ void __launch_bounds__(kNormThreads)
    normalise(Operand from, Operand gamma, Operand beta, Result to,
              std::int64_t rows, int width, R epsilon) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows)
    return;
  const std::int64_t start = row * width;
  const bool centred = beta.data != nullptr;
  OwnPacks<Held> own{width};
  R x[Packs][kPack];
  if constexpr (Held)
    loadOwn(from, start, own, x);
  // Calls `use` whenever x holds the next part of the row.
  const auto eachPart = [&](auto use) {
    if constexpr (Held) {
      use();
    } else {
      for (own.base = 0; own.base < width;
           own.base += widestRow(Packs, blockDim.x)) {
        loadOwn(from, start, own, x);
        use();
      }
    }
  };
  R mean = R(0), squares = R(0);
  if (centred) {
    eachPart([&] {
#pragma unroll
      for (int p = 0; p < Packs; ++p)
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          mean += x[p][i];
    });
    mean = sumOverRow(mean) / static_cast<R>(width);
  }
  eachPart([&] {
#pragma unroll
    for (int p = 0; p < Packs; ++p)
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const R apart = i < own.count(p) ? x[p][i] - mean : R(0);
        squares += apart * apart;
      }
  });
  squares = sumOverRow(squares);
  const R scale = R(1) / sqrt(squares / static_cast<R>(width) + epsilon);
  eachPart([&] {
    eachOwn<R, Packs>(gamma, 0, own, [&](int p, const R(&factors)[kPack]) {
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        x[p][i] = (x[p][i] - mean) * scale * factors[i];
    });
    if (centred)
      eachOwn<R, Packs>(beta, 0, own, [&](int p, const R(&shifts)[kPack]) {
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          x[p][i] += shifts[i];
      });
    storeOwn(to, start, own, x);
  });
}

/// Returns whether tensors with rows of `width` elements consist of whole,
/// aligned packs.
template <typename... Tensors>
bool arePacks(std::int64_t width, const Tensors &...tensors) {
  return width % kPack == 0 &&
         ((reinterpret_cast<std::uintptr_t>(tensors.data) % sizeof(uint4) ==
           0) &&
          ...);
}

/// Queues a layer norm, or an RMS norm if beta has no data, of `rows` rows.
template <typename R>
void norm(cudaStream_t stream, const Operand &from, const Operand &gamma,
          const Operand &beta, const Result &to, std::int64_t rows,
          std::int64_t width, double epsilon) {
  const auto queue = [&](auto kernel, int packs) {
    const unsigned threads =
        threadsOfRow(blocksFor(width, packs), kNormThreads);
    const unsigned together = threads == kWarp ? kNormRows : 1;
    launch(stream, {blocksFor(rows, together), 1, threads, together}, kernel,
           from, gamma, beta, to, rows, static_cast<int>(width),
           static_cast<R>(epsilon));
  };
  if (width > kWidestHeldRow || !arePacks(width, from, gamma, beta, to))
    queue(normalise<R, 1, false>, 1);
  else if (width <= widestRow(1, kWarp))
    queue(normalise<R, 1, true>, 1);
  else
    queue(normalise<R, 4, true>, 4);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH
