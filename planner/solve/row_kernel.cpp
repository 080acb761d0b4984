//===- row_kernel.cpp - The inner loop of elimination -----------*- C++ -*-===//
//
// Written for the auto-vectoriser, compiled for several instruction sets and
// chosen at load time. It has additions and minima alone, so no contraction can
// change the results.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/row_kernel.h"

#include <algorithm>
#include <limits>

// Sanitizers instrument the resolver, which runs before they start.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&         \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MTPLAN_PER_PROCESSOR                                                   \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MTPLAN_PER_PROCESSOR
#endif

namespace mtplan::planner {
namespace {

constexpr std::size_t kChunk = 16;

/// `Count` row inputs, `Length` entries; the result stays in registers.
template <std::size_t Count, std::size_t Length>
[[gnu::always_inline]] inline void
minimum(double *result, const double *const *rows, const double *scalars,
        std::size_t values, std::size_t stride, std::size_t at) {
  double best[Length];
  for (std::size_t b = 0; b < Length; ++b)
    best[b] = std::numeric_limits<double>::infinity();
  for (std::size_t v = 0; v < values; ++v) {
    double scalar = scalars[v];
    double sum[Length];
    for (std::size_t b = 0; b < Length; ++b)
      sum[b] = scalar;
    for (std::size_t i = 0; i < Count; ++i) {
      const double *row = rows[i] + v * stride + at;
      for (std::size_t b = 0; b < Length; ++b)
        sum[b] += row[b];
    }
    for (std::size_t b = 0; b < Length; ++b)
      best[b] = sum[b] < best[b] ? sum[b] : best[b];
  }
  for (std::size_t b = 0; b < Length; ++b)
    result[at + b] = best[b];
}

template <std::size_t Count>
[[gnu::always_inline]] inline void
minimumOfRows(double *result, const double *const *rows, const double *scalars,
              std::size_t values, std::size_t length) {
  std::size_t at = 0;
  for (; at + kChunk <= length; at += kChunk)
    minimum<Count, kChunk>(result, rows, scalars, values, length, at);
  for (; at + 4 <= length; at += 4)
    minimum<Count, 4>(result, rows, scalars, values, length, at);
  for (; at < length; ++at)
    minimum<Count, 1>(result, rows, scalars, values, length, at);
}

void noRows(double *result, const double *const * /*rows*/,
            std::size_t /*rowCount*/, const double *scalars, std::size_t values,
            std::size_t length) {
  std::fill(result, result + length,
            *std::min_element(scalars, scalars + values));
}

MTPLAN_PER_PROCESSOR
void oneRow(double *result, const double *const *rows, std::size_t /*rowCount*/,
            const double *scalars, std::size_t values, std::size_t length) {
  minimumOfRows<1>(result, rows, scalars, values, length);
}

MTPLAN_PER_PROCESSOR
void twoRows(double *result, const double *const *rows,
             std::size_t /*rowCount*/, const double *scalars,
             std::size_t values, std::size_t length) {
  minimumOfRows<2>(result, rows, scalars, values, length);
}

MTPLAN_PER_PROCESSOR
void threeRows(double *result, const double *const *rows,
               std::size_t /*rowCount*/, const double *scalars,
               std::size_t values, std::size_t length) {
  minimumOfRows<3>(result, rows, scalars, values, length);
}

MTPLAN_PER_PROCESSOR
void manyRows(double *result, const double *const *rows, std::size_t rowCount,
              const double *scalars, std::size_t values, std::size_t length) {
  for (std::size_t b = 0; b < length; ++b) {
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t v = 0; v < values; ++v) {
      double sum = scalars[v];
      for (std::size_t i = 0; i < rowCount; ++i)
        sum += rows[i][v * length + b];
      best = sum < best ? sum : best;
    }
    result[b] = best;
  }
}

} // namespace

RowKernel rowKernel(std::size_t rowCount) {
  constexpr RowKernel kKernels[] = {noRows, oneRow, twoRows, threeRows};
  return rowCount < 4 ? kKernels[rowCount] : manyRows;
}

} // namespace mtplan::planner
