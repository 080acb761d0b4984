//===- place_kernels.h - Pieces of several places, on a device --*- C++ -*-===//
//
// Queued on the context's selected stream. Sums and maxima have the bits of
// runtime/communicator/reduce.h.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H

#include <cstdint>
#include <span>

#include "runtime/cuda/context.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime::cuda {

/// Places whose memory one kernel sees.
inline constexpr int kMostPlaces = 64;

/// Rows of `inner` elements, whose starts lie `stride` elements apart.
struct PieceRows {
  ElementType type = ElementType::f32;
  std::int64_t rows = 1, inner = 1, stride = 1;
};

/// Reduces the rows of all sources, in their order, into every output, where
/// rows lie without gaps. An output may be a source if there is one row.
/// \param sources, outputs  at most kMostPlaces
void reducePlaces(const Context &context, Reduction reduction,
                  std::span<const void *const> sources,
                  std::span<void *const> outputs, const PieceRows &rows);

/// Row o of the result is row o of the first source, then of the second, ...
/// \param sources  at most kMostPlaces
void gatherPlaces(const Context &context, std::span<const void *const> sources,
                  void *out, const PieceRows &rows);

/// [first][second][inner] becomes [second][first][inner]; not in place.
void exchangeDimensions(const Context &context, ElementType type,
                        const void *in, void *out, std::int64_t first,
                        std::int64_t second, std::int64_t inner);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H
