//===- place_kernels.h - Kernels over the buffers of places -----*- C++ -*-===//
//
// Kernels are queued on the context's selected stream. Sums and maxima have the
// bits of runtime/communicator/reduce.h.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H

#include <cstdint>
#include <span>

#include "runtime/cuda/context.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime::cuda {

/// The most places whose memory one kernel accesses.
inline constexpr int kMostPlaces = 64;

/// Rows of `inner` elements, whose starts lie `stride` elements apart.
struct PieceRows {
  ElementType type = ElementType::f32;
  std::int64_t rows = 1, inner = 1, stride = 1;
};

/// Reduces the rows of all sources, in their order, into every output, which
/// has contiguous rows. An output may be a source if there is one row. \param
/// sources, outputs  at most kMostPlaces
void reducePlaces(const Context &context, Reduction reduction,
                  std::span<const void *const> sources,
                  std::span<void *const> outputs, const PieceRows &rows);

/// Gathers rows: row o of the result is row o of the first source, then of the
/// second, and so on.
/// \param sources  at most kMostPlaces
void gatherPlaces(const Context &context, std::span<const void *const> sources,
                  void *out, const PieceRows &rows);

/// Transposes [first][second][inner] to [second][first][inner], not in place.
void exchangeDimensions(const Context &context, ElementType type,
                        const void *in, void *out, std::int64_t first,
                        std::int64_t second, std::int64_t inner);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H
