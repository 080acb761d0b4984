//===- position.cuh - First positions, position embeddings ------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_POSITION_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_POSITION_CUH

#include "runtime/cuda/device/elements.cuh"
#include "runtime/cuda/device/sums.cuh"

namespace mtplan::runtime::cuda {

/// Describes the positions of a shard: `length` is their number per sample, and
/// `first` is 0 if the shard holds position 0, else -1.
struct Sequence {
  std::int64_t length, first;
  __device__ bool isFirst(std::int64_t row) const {
    return first >= 0 && row % length == 0;
  }
};

struct PutFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t row) const {
    return sequence.isFirst(row) ? SourceRows{-1, 0} : SourceRows{row, -1};
  }
};

struct OtherThanFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t row) const {
    return {sequence.isFirst(row) ? -1 : row, -1};
  }
};

struct TakeFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t sample) const {
    return {sequence.first >= 0 ? sample * sequence.length : -1, -1};
  }
};

struct GiveFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t row) const {
    return {sequence.isFirst(row) ? row / sequence.length : -1, -1};
  }
};

/// Describes the rows of the position table on this rank: the row of the first
/// local position, and the number of rows. The table is sharded along with the
/// positions, or replicated.
struct PositionTable {
  std::int64_t shift, held;
};

struct PositionSource {
  PositionTable table;
  std::int64_t length;
  __device__ SourceRows operator()(std::int64_t row) const {
    const std::int64_t at = row % length + table.shift;
    return {row, at >= 0 && at < table.held ? at : -1};
  }
};

/// Adds the row of a sample's first position to `sums` (for sumColumns).
template <typename R> struct FirstRow {
  Operand from;
  Sequence sequence;
  std::int64_t width;
  __device__ void operator()(std::int64_t sample, std::int64_t column,
                             int count, R (&sums)[kPack]) const {
    if (sequence.first >= 0)
      addPack(from, sample * sequence.length * width + column, count, sums);
  }
};

/// Sums the gradients of each position over samples, in order. A thread
/// processes a pack of a row of the table.
template <typename R>
__global__ void sumPositions(Operand from, Result to, PositionTable table,
                             std::int64_t samples, std::int64_t length,
                             std::int64_t width) {
  const auto [row, h, count] = packOfThread(width);
  if (row >= table.held)
    return;
  const std::int64_t position = row - table.shift;
  R sum[kPack] = {}, x[kPack];
  if (position >= 0 && position < length)
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      load(from, (sample * length + position) * width + h, count, x);
      for (int i = 0; i < kPack; ++i)
        sum[i] += x[i];
    }
  store(to, row * width + h, count, sum);
}

/// Queues a copy in which `first` replaces each sample's first position.
/// \param rows  the number of rows of the result
template <typename R>
void putFirst(cudaStream_t stream, const Operand &from, const Operand &first,
              const Result &to, std::int64_t rows, std::int64_t width,
              const Sequence &sequence) {
  gather<R>(stream, from, first, to, rows, width, PutFirstSource{sequence});
}

/// Queues the copy of each sample's first position; shards without that
/// position write zeros.
template <typename R>
void takeFirst(cudaStream_t stream, const Operand &from, const Result &to,
               std::int64_t rows, std::int64_t width,
               const Sequence &sequence) {
  gather<R>(stream, from, kNone, to, rows, width, TakeFirstSource{sequence});
}

template <typename R>
void takeFirstGrad(cudaStream_t stream, const Operand &above, const Result &to,
                   std::int64_t rows, std::int64_t width,
                   const Sequence &sequence) {
  gather<R>(stream, above, kNone, to, rows, width, GiveFirstSource{sequence});
}

/// \param sizes  [samples, 1, features]
template <typename R>
void putFirstGrad(cudaStream_t stream, const Operand &above, const Result &to,
                  const Result &toFirst, const ColumnSizes &sizes,
                  const Sequence &sequence, void *scratch) {
  gather<R>(stream, above, kNone, to, sizes.samples * sequence.length,
            sizes.columns, OtherThanFirstSource{sequence});
  sumColumns<R>(stream, sizes, static_cast<R *>(scratch), toFirst,
                FirstRow<R>{above, sequence, sizes.columns});
}

/// Queues the addition of the table's rows to the rows of `from`, by position.
/// \param length  the number of local positions per sample
template <typename R>
void positionEmbedding(cudaStream_t stream, const Operand &from,
                       const Operand &rowsOfTable, const Result &to,
                       std::int64_t rows, std::int64_t width,
                       const PositionTable &table, std::int64_t length) {
  gather<R>(stream, from, rowsOfTable, to, rows, width,
            PositionSource{table, length});
}

template <typename R>
void positionEmbeddingGrad(cudaStream_t stream, const Operand &above,
                           const Result &to, const PositionTable &table,
                           std::int64_t samples, std::int64_t length,
                           std::int64_t width) {
  launch(stream, gridOfPacks(table.held, width), sumPositions<R>, above, to,
         table, samples, length, width);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_POSITION_CUH
