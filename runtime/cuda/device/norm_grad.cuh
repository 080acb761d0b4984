//===- norm_grad.cuh - Gradients of layer and RMS norms ---------*- C++ -*-===//
//
// A block processes kNormPieceRows rows of a sample (a piece), one row after
// another, and a thread processes the same columns of all rows. The block reads
// each tensor once. The block computes the gradients of the rows, and sums the
// gradients of gamma and beta over the piece. If rows consist of whole, aligned
// packs and are narrow enough, the block copies the next row to shared memory
// while computing a row.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_NORM_GRAD_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_NORM_GRAD_CUH

#include <algorithm>
#include <string>
#include <type_traits>

#include "runtime/cuda/device/addend.cuh"
#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/norm.cuh"
#include "runtime/cuda/device/sums.cuh"
#include "runtime/cuda/device/tensor_core.cuh"

namespace mtplan::runtime::cuda {

/// Sets the number of rows per piece. Pieces are short, so that there is a
/// piece for every multiprocessor.
inline constexpr std::int64_t kNormPieceRows = 16;

inline constexpr std::int64_t kWidestNormGrad = widestRow(8, kNormThreads);

template <typename R> struct NormGradient {
  Operand from, gamma, above;
  Addend addend; ///< is added to the gradients of rows
  Result to;
  R *parts; ///< partial sums for gamma, then for beta of a layer norm
  ColumnSizes sizes;
  R epsilon;
  std::int64_t copyBytes = 0; ///< size of a row in shared memory
};

/// Defines the shared memory of normaliseGrad. Even and odd rows use different
/// memory, so that a thread may begin a row while other threads still read the
/// previous row.
template <typename R> struct NormMemory {
  R warps[2][4][kWarp]; ///< sums of the warps of a block
  // Copies of two rows of three tensors follow.

  /// Returns the copy of a row of tensor number `tensor`.
  __device__ char *copyOf(std::int64_t row, int tensor, std::int64_t bytes) {
    return reinterpret_cast<char *>(this + 1) +
           (static_cast<int>(row & 1) * 3 + tensor) * bytes;
  }
};

/// Begins to copy this thread's packs of a row. Only this thread reads the
/// copies, so they need no barrier.
template <int Packs>
__device__ void beginOwn(char *to, const Operand &from, std::int64_t row,
                         const OwnPacks<true> &own) {
  const int size = static_cast<int>(bytesOf(from.type));
  const char *data =
      static_cast<const char *>(from.data) + row * own.width * size;
#pragma unroll
  for (int p = 0; p < Packs; ++p)
    if (own.count(p) != 0)
#pragma unroll 1
      for (int w = 0; w < kPack * size / static_cast<int>(sizeof(uint4)); ++w) {
        const int b = own.first(p) * size + w * static_cast<int>(sizeof(uint4));
        beginCopy<sizeof(uint4)>(to + b, data + b, true);
      }
}

/// Computes dx = scale * (d - mean(d) - n * mean(d * n)), where n is the
/// normalized row, d = above * gamma, and scale = 1 / standard deviation. An
/// RMS norm omits mean(d). Also computes the partial sums for gamma and beta.
/// \tparam Copies  whether rows consist of whole packs and are copied to shared
/// memory
/// \tparam Blocks  the least number of blocks per multiprocessor
/// \tparam Bf16  whether the tensors other than gamma and the partial sums are
/// bf16
template <typename R, bool Centred, bool Copies, int Packs, unsigned Threads,
          unsigned Blocks, bool Bf16>
__global__ void __launch_bounds__(Threads, Blocks)
    normaliseGrad(NormGradient<R> all) {
  if constexpr (Bf16)
    all.from.type = all.above.type = all.addend.data.type = all.addend.between =
        all.to.type = ElementType::bf16;
  const std::int64_t pieces = all.sizes.pieces(), piece = blockIdx.x % pieces,
                     sample = blockIdx.x / pieces * all.sizes.rows,
                     begin = sample + all.sizes.firstRow(piece),
                     end = sample + all.sizes.lastRow(piece);
  const int width = static_cast<int>(all.sizes.columns);
  const OwnPacks<Copies> own{width};
  const bool adds = all.addend.data.data != nullptr;
  auto *const memory = static_cast<NormMemory<R> *>(launchedMemory());
  const auto beginRow = [&](std::int64_t row) {
    if constexpr (Copies) {
      const auto copy = [&](const Operand &from, int tensor) {
        beginOwn<Packs>(memory->copyOf(row, tensor, all.copyBytes), from, row,
                        own);
      };
      copy(all.from, 0);
      copy(all.above, 1);
      if (adds)
        copy(all.addend.data, 2);
    }
  };
  beginRow(begin);
  R gamma[Packs][kPack], toGamma[Packs][kPack] = {}, toBeta[Packs][kPack] = {};
  loadOwn(all.gamma, 0, own, gamma);
  const R ofWidth = R(1) / static_cast<R>(width);
  for (std::int64_t row = begin; row < end; ++row) {
    if constexpr (Copies)
      endCopies();
    if (row + 1 < end)
      beginRow(row + 1);
    // Calls `use(p, values)` for the packs of a row of a tensor.
    const auto eachOf = [&](const Operand &from, int tensor, auto use) {
      if constexpr (Copies)
        eachOwn<R, Packs>(
            {memory->copyOf(row, tensor, all.copyBytes), from.type}, 0, own,
            use);
      else
        eachOwn<R, Packs>(from, row * width, own, use);
    };
    R x[Packs][kPack], above[Packs][kPack], total = R(0);
    eachOf(all.from, 0, [&](int p, const R(&values)[kPack]) {
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        total += x[p][i] = values[i];
    });
    eachOf(all.above, 1, [&](int p, const R(&values)[kPack]) {
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        above[p][i] = values[i];
    });
    R(*const warps)[kWarp] = memory->warps[row & 1];
    constexpr unsigned kWarps = Threads / kWarp;
    R mean = R(0);
    if constexpr (Centred)
      mean = sumsOverBlock<kWarps>(Several<R, 1>{{total}}, warps)[0] * ofWidth;
    Several<R, Centred ? 3 : 2> sums{}; // of (x - mean)^2, d * (x - mean), d
#pragma unroll
    for (int p = 0; p < Packs; ++p)
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const R d = above[p][i] * gamma[p][i];
        if constexpr (Centred) {
          x[p][i] = i < own.count(p) ? x[p][i] - mean : R(0);
          sums[2] += d;
        }
        sums[0] += x[p][i] * x[p][i];
        sums[1] += d * x[p][i];
      }
    sums = sumsOverBlock<kWarps>(sums, warps + 1);
    const R scale = R(1) / sqrt(sums[0] * ofWidth + all.epsilon);
    const R meanOfDN = sums[1] * scale * ofWidth;
    R meanOfD = R(0);
    if constexpr (Centred)
      meanOfD = sums[2] * ofWidth;
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const R n = x[p][i] * scale;
        toGamma[p][i] += above[p][i] * n;
        if constexpr (Centred)
          toBeta[p][i] += above[p][i];
        x[p][i] = scale * (above[p][i] * gamma[p][i] - meanOfD - n * meanOfDN);
      }
      if (adds)
        roundTo(all.addend.between, x[p]);
    }
    if (adds)
      eachOf(all.addend.data, 2, [&](int p, const R(&other)[kPack]) {
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          x[p][i] = addedApart(other[i], x[p][i]);
      });
    storeOwn(all.to, row * width, own, x);
  }
  constexpr ElementType kType =
      std::is_same_v<R, double> ? ElementType::f64 : ElementType::f32;
  const std::int64_t part = std::int64_t{blockIdx.x} * width;
  storeOwn({all.parts, kType}, part, own, toGamma);
  if constexpr (Centred)
    storeOwn({all.parts + all.sizes.parts(), kType}, part, own, toBeta);
}

template <typename R>
std::size_t normGradScratch(ColumnSizes sizes, bool centred) {
  sizes.pieceRows = kNormPieceRows;
  return columnScratch<R>(sizes, centred ? 2 : 1);
}

/// Queues normaliseGrad with `Packs` packs per thread, or returns false if rows
/// are too wide. With Copies, rows must also consist of whole, aligned packs
/// and fit into shared memory.
template <bool Centred, bool Copies, int Packs, unsigned Threads,
          unsigned Blocks = 1, typename R>
bool tryNormGrad(cudaStream_t stream, NormGradient<R> all) {
  const std::int64_t width = all.sizes.columns;
  if (width > widestRow(Packs, Threads))
    return false;
  const auto sharedOf = [](std::int64_t ofRow) {
    return static_cast<unsigned>(sizeof(NormMemory<R>)) +
           6 * static_cast<unsigned>(ofRow);
  };
  if (Copies) {
    // The limit assumes elements of type R, so that the choice does not depend
    // on the addend's type: fusion must not change bits.
    const unsigned most = sharedOf(width * sizeof(R));
    if (!arePacks(width, all.from, all.gamma, all.above, all.addend.data,
                  all.to) ||
        (most > kMostShared && most > mostSharedOfDevice()))
      return false;
    const auto bytes = [](const Operand &tensor) {
      return tensor.data ? bytesOf(tensor.type) : 0;
    };
    all.copyBytes = width * std::max({bytes(all.from), bytes(all.above),
                                      bytes(all.addend.data)});
  }
  const auto queue = [&](auto kernel) {
    launch(stream,
           {all.sizes.samples * all.sizes.pieces(), 1,
            threadsOfRow(blocksFor(width, Packs), Threads), 1,
            sharedOf(all.copyBytes)},
           kernel, all);
    return true;
  };
  if constexpr (Copies && std::is_same_v<R, float>)
    if (areBf16(all.from.type, all.above.type, all.to.type) &&
        all.addend.isBf16())
      return queue(
          normaliseGrad<R, Centred, Copies, Packs, Threads, Blocks, true>);
  return queue(
      normaliseGrad<R, Centred, Copies, Packs, Threads, Blocks, false>);
}

template <bool Centred, typename R>
void queueNormGrad(cudaStream_t stream, const NormGradient<R> &all) {
  // Threads hold their packs in registers, so narrow rows use few packs per
  // thread. With floats, a multiprocessor runs four blocks, which hide each
  // other's latencies. A layer norm needs more registers, so its blocks have
  // fewer threads.
  constexpr unsigned kNarrow = Centred ? 192 : 256;
  constexpr unsigned kBlocks = std::is_same_v<R, float> ? 4 : 1;
  if (!tryNormGrad<Centred, true, 1, kNarrow, kBlocks>(stream, all) &&
      !tryNormGrad<Centred, true, 2, kNormThreads>(stream, all) &&
      !tryNormGrad<Centred, false, 1, 256>(stream, all) &&
      !tryNormGrad<Centred, false, 4, kNormThreads>(stream, all) &&
      !tryNormGrad<Centred, false, 8, kNormThreads>(stream, all))
    throw DeviceError("the gradient of a norm has rows of " +
                      std::to_string(all.sizes.columns) +
                      " columns; GPU kernels support at most " +
                      std::to_string(kWidestNormGrad));
}

/// Queues the gradient of a norm.
/// \param toBeta  has no data for an RMS norm
/// \param addend  is added to the gradient of `from`
/// \throws DeviceError if rows are wider than kWidestNormGrad
template <typename R>
void normGrad(cudaStream_t stream, const Operand &from, const Operand &gamma,
              const Operand &above, const Result &to, const Result &toGamma,
              const Result &toBeta, ColumnSizes sizes, double epsilon,
              void *scratch, const Addend &addend = {}) {
  sizes.pieceRows = kNormPieceRows;
  const NormGradient<R> all{from,  gamma,
                            above, addend,
                            to,    static_cast<R *>(scratch),
                            sizes, static_cast<R>(epsilon)};
  const R *parts = all.parts;
  if (toBeta.data) {
    queueNormGrad<true>(stream, all);
    addPieces<R, 2>(stream, sizes, parts, {{toGamma, toBeta}});
  } else {
    queueNormGrad<false>(stream, all);
    addPieces<R, 1>(stream, sizes, parts, {{toGamma}});
  }
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_NORM_GRAD_CUH
