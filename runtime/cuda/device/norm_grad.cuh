//===- norm_grad.cuh - Gradients of layer and RMS norms ---------*- C++ -*-===//
//
// A block processes kNormPieceRows rows of a sample (a piece), one row after
// another, and a thread processes the same columns of all rows. The block reads
// each tensor once, to compute the gradients of the rows and, summed over the
// piece, the gradients of gamma and beta.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_NORM_GRAD_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_NORM_GRAD_CUH

#include <string>
#include <type_traits>

#include "runtime/cuda/device/addend.cuh"
#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/sums.cuh"

namespace mtplan::runtime::cuda {

/// Rows per piece, few enough that every multiprocessor has a piece.
inline constexpr std::int64_t kNormPieceRows = 16;

/// Returns the width in elements of the widest row that `threads` threads with
/// `packs` packs each process.
constexpr std::int64_t widestRow(int packs, unsigned threads) {
  return std::int64_t{packs} * kPack * threads;
}
inline constexpr std::int64_t kWidestNormGrad = widestRow(8, 512);

/// The arguments of normaliseGrad.
template <typename R> struct NormGradient {
  Operand from, gamma, above;
  Addend addend; ///< added to the rows' gradients
  Result to;
  R *parts; ///< partial sums for gamma, then for beta if `centred`
  ColumnSizes sizes;
  R epsilon;
  bool centred;
};

/// Computes dx = scale * (d - mean(d) - n * mean(d * n)) with the normalized
/// row n and d = above * gamma; an RMS norm omits mean(d). Also computes the
/// partial sums for gamma and beta.
template <typename R, int Packs, unsigned Threads>
__global__ void __launch_bounds__(Threads) normaliseGrad(NormGradient<R> all) {
  const std::int64_t width = all.sizes.columns, pieces = all.sizes.pieces();
  const std::int64_t sample = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  const auto firstOf = [&](int pack) {
    return (std::int64_t{pack} * blockDim.x + threadIdx.x) * kPack;
  };
  const auto countOf = [&](int pack) {
    return firstOf(pack) < width ? packAt(firstOf(pack), width) : 0;
  };
  R toGamma[Packs][kPack] = {}, toBeta[Packs][kPack] = {};
  for (std::int64_t row = all.sizes.firstRow(piece);
       row < all.sizes.lastRow(piece); ++row) {
    const std::int64_t start = (sample * all.sizes.rows + row) * width;
    R x[Packs][kPack], d[Packs][kPack], mean = R(0);
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      load(all.from, start + firstOf(p), countOf(p), x[p]);
      load(all.above, start + firstOf(p), countOf(p), d[p]);
    }
    if (all.centred) {
#pragma unroll
      for (int p = 0; p < Packs; ++p)
#pragma unroll
        for (int i = 0; i < kPack; ++i)
          mean += x[p][i];
      mean = sumOverBlock(mean) / static_cast<R>(width);
    }
    R squares = R(0);
#pragma unroll
    for (int p = 0; p < Packs; ++p)
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        x[p][i] = i < countOf(p) ? x[p][i] - mean : R(0);
        squares += x[p][i] * x[p][i];
      }
    const R scale = R(1) / sqrt(sumOverBlock(squares) / static_cast<R>(width) +
                                all.epsilon);
    Several<R, 2> sums{}; // sums of d, and of d * n
    R gamma[kPack];
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
      load(all.gamma, firstOf(p), countOf(p), gamma);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        x[p][i] *= scale;
        toGamma[p][i] += d[p][i] * x[p][i];
        toBeta[p][i] += d[p][i];
        d[p][i] *= gamma[i];
        sums[0] += d[p][i];
        sums[1] += d[p][i] * x[p][i];
      }
    }
    sums = sumsOverBlock(sums);
    const R middle = all.centred ? sums[0] / static_cast<R>(width) : R(0);
    const R slope = sums[1] / static_cast<R>(width);
#pragma unroll
    for (int p = 0; p < Packs; ++p) {
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        x[p][i] = scale * (d[p][i] - middle - x[p][i] * slope);
      all.addend.addTo(x[p], start + firstOf(p), countOf(p));
      store(all.to, start + firstOf(p), countOf(p), x[p]);
    }
  }
  constexpr ElementType kType =
      std::is_same_v<R, double> ? ElementType::f64 : ElementType::f32;
  const std::int64_t part = std::int64_t{blockIdx.x} * width;
#pragma unroll
  for (int p = 0; p < Packs; ++p) {
    store({all.parts, kType}, part + firstOf(p), countOf(p), toGamma[p]);
    if (all.centred)
      store({all.parts + all.sizes.parts(), kType}, part + firstOf(p),
            countOf(p), toBeta[p]);
  }
}

/// Returns the scratch memory of normGrad in bytes.
template <typename R>
std::size_t normGradScratch(ColumnSizes sizes, bool centred) {
  sizes.pieceRows = kNormPieceRows;
  return columnScratch<R>(sizes, centred ? 2 : 1);
}

/// Queues normaliseGrad with `Packs` packs per thread.
/// \return false, without queueing anything, if the rows are too wide
template <int Packs, unsigned Threads, typename R>
bool queueNormGrad(cudaStream_t stream, const NormGradient<R> &all) {
  const std::int64_t width = all.sizes.columns;
  if (width > widestRow(Packs, Threads))
    return false;
  launch(stream,
         {all.sizes.samples * all.sizes.pieces(), 1,
          threadsOfRow(blocksFor(width, Packs), Threads)},
         normaliseGrad<R, Packs, Threads>, all);
  return true;
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
  const bool centred = toBeta.data != nullptr;
  const std::int64_t width = sizes.columns;
  const NormGradient<R> all{from,   gamma,
                            above,  addend,
                            to,     static_cast<R *>(scratch),
                            sizes,  static_cast<R>(epsilon),
                            centred};
  // Threads hold their packs in registers, so narrow rows use few packs per
  // thread.
  if (!queueNormGrad<1, 256>(stream, all) &&
      !queueNormGrad<2, 256>(stream, all) &&
      !queueNormGrad<4, 256>(stream, all) &&
      !queueNormGrad<4, 512>(stream, all) &&
      !queueNormGrad<8, 512>(stream, all))
    throw DeviceError("the gradient of a norm of " + std::to_string(width) +
                      " columns: at most " + std::to_string(kWidestNormGrad) +
                      " can be done on a GPU");
  const R *parts = all.parts;
  if (centred)
    addPieces<R, 2>(stream, sizes, parts, {{toGamma, toBeta}});
  else
    addPieces<R, 1>(stream, sizes, parts, {{toGamma}});
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_NORM_GRAD_CUH
