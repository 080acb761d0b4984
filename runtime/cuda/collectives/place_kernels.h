//===- place_kernels.h - Kernels over several ranks' buffers ----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H
#define MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H

#include <cstdint>
#include <span>

#include "runtime/cuda/context.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime::cuda {

/// Limits the ranks whose buffers one kernel accesses.
inline constexpr int kMostPlaces = 64;

/// Describes rows of `inner` elements with a row stride of `stride` elements.
struct PieceRows {
  ElementType type = ElementType::f32;
  std::int64_t rows = 1, inner = 1, stride = 1;
};

/// Reduces all sources, in order, into every output. The bits equal those of
/// runtime/communicator/reduce.h. All functions of this file queue kernels on
/// the context's selected stream. The rows of an output are contiguous. An
/// output may also be a source if there is only one row.
/// \param sources, outputs  at most kMostPlaces
void reducePlaces(const Context &context, Reduction reduction,
                  std::span<const void *const> sources,
                  std::span<void *const> outputs, const PieceRows &rows);

/// Concatenates the rows of all sources: row o of the result consists of row o
/// of each source, in order.
/// \param sources  at most kMostPlaces
void gatherPlaces(const Context &context, std::span<const void *const> sources,
                  void *out, const PieceRows &rows);

/// Transposes [first][second][inner] to [second][first][inner], out of place.
void exchangeDimensions(const Context &context, ElementType type,
                        const void *in, void *out, std::int64_t first,
                        std::int64_t second, std::int64_t inner);

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_COLLECTIVES_PLACE_KERNELS_H
