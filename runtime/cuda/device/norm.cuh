//===- norm.cuh - Layer and RMS norms ---------------------------*- C++ -*-===//
//
// A block for each row. The row is read again for each of its sums: after the
// first time it is in the nearest cache.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH

#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/column_sums.cuh"
#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kNormThreads = 256;

/// Mean (0 if not centred) and reciprocal of the standard deviation of a row.
template <typename R> struct Statistics { R mean, scale; };

template <typename R>
__device__ Statistics<R> statisticsOf(const Operand &from, std::int64_t start,
                                      std::int64_t width, R epsilon,
                                      bool centred) {
  R x[kPack];
  R mean = R(0);
  if (centred) {
    R sum = R(0);
    packsOfRow(width, [&](std::int64_t first, int count) {
      load(from, start + first, count, x);
      for (int i = 0; i < count; ++i)
        sum += x[i];
    });
    mean = sumOverBlock(sum) / static_cast<R>(width);
  }
  R squares = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < count; ++i)
      squares += (x[i] - mean) * (x[i] - mean);
  });
  squares = sumOverBlock(squares);
  return {mean, R(1) / sqrt(squares / static_cast<R>(width) + epsilon)};
}

/// \param beta  without data if there is none: then the norm is not centred
template <typename R>
__global__ void normalise(Operand from, Operand gamma, Operand beta, Result to,
                          std::int64_t width, R epsilon) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  const bool centred = beta.data != nullptr;
  const Statistics<R> row = statisticsOf(from, start, width, epsilon, centred);
  R x[kPack], scale[kPack], shift[kPack];
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    load(gamma, first, count, scale);
    for (int i = 0; i < kPack; ++i)
      x[i] = (x[i] - row.mean) * row.scale * scale[i];
    if (centred) {
      load(beta, first, count, shift);
      for (int i = 0; i < kPack; ++i)
        x[i] += shift[i];
    }
    store(to, start + first, count, x);
  });
}

/// With n the normalised row and d = above * gamma:
/// dx = scale * (d - mean(d) - n * mean(d * n)), mean(d) only if centred.
/// What the sums over rows need is kept.
template <typename R>
__global__ void normaliseGrad(Operand from, Operand gamma, Operand above,
                              Result to, Statistics<R> *kept,
                              std::int64_t width, R epsilon, bool centred) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  const Statistics<R> row = statisticsOf(from, start, width, epsilon, centred);
  if (threadIdx.x == 0)
    kept[blockIdx.x] = row;
  R x[kPack], d[kPack], scale[kPack];
  auto scaled = [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    load(above, start + first, count, d);
    load(gamma, first, count, scale);
    for (int i = 0; i < kPack; ++i) {
      x[i] = (x[i] - row.mean) * row.scale;
      d[i] *= scale[i];
    }
  };
  R sum = R(0), projection = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    scaled(first, count);
    for (int i = 0; i < count; ++i) {
      sum += d[i];
      projection += d[i] * x[i];
    }
  });
  const R slope = sumOverBlock(projection) / static_cast<R>(width);
  const R middle = centred ? sumOverBlock(sum) / static_cast<R>(width) : R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    scaled(first, count);
    for (int i = 0; i < kPack; ++i)
      x[i] = row.scale * (d[i] - middle - x[i] * slope);
    store(to, start + first, count, x);
  });
}

/// What one element adds to the gradients of gamma and beta.
template <typename R> struct NormTerms {
  Operand from, above;
  const Statistics<R> *rows;
  std::int64_t width;

  template <int Sums>
  __device__ void operator()(std::int64_t row, std::int64_t column,
                             Several<R, Sums> &sums) const {
    const R d = loadOne<R>(above, row * width + column);
    const R x = loadOne<R>(from, row * width + column);
    sums[0] += d * ((x - rows[row].mean) * rows[row].scale);
    if constexpr (Sums == 2)
      sums[1] += d;
  }
};

/// Layer norm, or RMS norm if there is no beta, of `rows` rows.
template <typename R>
void norm(cudaStream_t stream, const Operand &from, const Operand &gamma,
          const Operand &beta, const Result &to, std::int64_t rows,
          std::int64_t width, double epsilon) {
  launch(stream, {rows, 1, kNormThreads}, normalise<R>, from, gamma, beta, to,
         width, static_cast<R>(epsilon));
}

/// Bytes of what rows keep for the sums over them.
template <typename R> std::size_t keptBytes(const ColumnSizes &sizes) {
  return roundedUp(static_cast<std::size_t>(sizes.samples * sizes.rows) *
                   sizeof(Statistics<R>));
}
template <typename R>
std::size_t normGradScratch(const ColumnSizes &sizes, bool centred) {
  return keptBytes<R>(sizes) + columnScratch<R>(sizes, centred ? 2 : 1);
}

/// \param toBeta  without data: an RMS norm
template <typename R>
void normGrad(cudaStream_t stream, const Operand &from, const Operand &gamma,
              const Operand &above, const Result &to, const Result &toGamma,
              const Result &toBeta, const ColumnSizes &sizes, double epsilon,
              void *scratch) {
  const bool centred = toBeta.data != nullptr;
  auto *kept = static_cast<Statistics<R> *>(scratch);
  auto *parts = reinterpret_cast<R *>(static_cast<std::byte *>(scratch) +
                                      keptBytes<R>(sizes));
  launch(stream, {sizes.samples * sizes.rows, 1, kNormThreads},
         normaliseGrad<R>, from, gamma, above, to, kept, sizes.columns,
         static_cast<R>(epsilon), centred);
  const NormTerms<R> terms{from, above, kept, sizes.columns};
  if (centred)
    sumColumns<R, 2>(stream, sizes, parts, {{toGamma, toBeta}}, terms);
  else
    sumColumns<R, 1>(stream, sizes, parts, {{toGamma}}, terms);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_NORM_CUH
