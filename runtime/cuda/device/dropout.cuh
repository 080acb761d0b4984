//===- dropout.cuh - Dropout over a piece of a tensor -----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_DROPOUT_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_DROPOUT_CUH

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/backend/tensor_view.h"
#include "runtime/cuda/device/addend.cuh"
#include "runtime/cuda/device/mask.cuh"
#include "runtime/cuda/device/rows.cuh"

namespace mtplan::runtime::cuda {

/// Where a piece lies in the whole: dimensions that it has whole are one with
/// those before them.
struct Piece {
  int dims = 1;
  std::int64_t sizes[kMostDims] = {1}, offsets[kMostDims] = {},
               globals[kMostDims] = {1};

  /// Index in the whole of the first element of a row: of the last dimension.
  __device__ std::int64_t indexOf(std::int64_t row) const {
    std::int64_t index = offsets[dims - 1], size = globals[dims - 1];
    for (int d = dims - 2; d >= 0; --d) {
      index += (offsets[d] + row % sizes[d]) * size;
      row /= sizes[d];
      size *= globals[d];
    }
    return index;
  }
};

/// \throws std::invalid_argument if it is cut along more than kMostDims
inline Piece pieceOfWhole(const TensorView &view) {
  // From the last on; turned round below.
  std::vector<std::int64_t> sizes, offsets, globals;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    const std::int64_t size = view.shape[d];
    const Span span = view.pieces.empty() ? Span{0, size} : view.pieces[d];
    if (!sizes.empty() && sizes.back() == globals.back()) {
      offsets.back() = span.offset * globals.back();
      globals.back() *= span.global;
      sizes.back() *= size;
      continue;
    }
    sizes.push_back(size);
    offsets.push_back(span.offset);
    globals.push_back(span.global);
  }
  if (sizes.size() > kMostDims)
    throw std::invalid_argument("is cut along more than " +
                                std::to_string(kMostDims) + " dimensions");
  Piece piece;
  piece.dims = std::max(1, static_cast<int>(sizes.size()));
  std::reverse_copy(sizes.begin(), sizes.end(), piece.sizes);
  std::reverse_copy(offsets.begin(), offsets.end(), piece.offsets);
  std::reverse_copy(globals.begin(), globals.end(), piece.globals);
  return piece;
}

/// A thread for each pack of each row.
template <typename R>
__global__ void dropOut(Operand from, Addend addend, Result to, Piece piece,
                        std::int64_t rows, std::int64_t before, Masks masks) {
  const std::int64_t width = piece.sizes[piece.dims - 1];
  const std::int64_t packs = (width + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= rows * packs)
    return;
  const std::int64_t row = pack / packs, h = pack % packs * kPack;
  const int count = packAt(h, width);
  R x[kPack];
  load(from, row * width + h, count, x);
  masks.now().apply(before + piece.indexOf(row) + h, x);
  addend.addTo(x, row * width + h, count);
  store(to, row * width + h, count, x);
}

template <typename R>
void dropout(cudaStream_t stream, const Operand &from, const Result &to,
             const TensorView &view, std::int64_t microBatch,
             const Masks &masks, const Addend &addend = {}) {
  const Piece piece = pieceOfWhole(view);
  const std::int64_t width = piece.sizes[piece.dims - 1];
  const std::int64_t rows = view.elements() / width;
  std::int64_t whole = 1;
  for (int d = 0; d < piece.dims; ++d)
    whole *= piece.globals[d];
  constexpr unsigned kThreads = 256;
  launch(stream,
         {blocksFor(rows * blocksFor(width, kPack), kThreads), 1, kThreads},
         dropOut<R>, from, addend, to, piece, rows, microBatch * whole, masks);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_DROPOUT_CUH
