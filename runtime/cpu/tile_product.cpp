//===- tile_product.cpp - Products of small matrices ----------------------===//

#include "runtime/cpu/tile_product.h"

#include "runtime/cpu/simd.h"

namespace mtplan::runtime::cpu {
namespace {

/// 64 bytes of R, at any address. The compiler takes as many registers for it
/// as the machine needs.
template <typename R> struct Lanes;
template <> struct Lanes<float> {
  using Type [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;
};
template <> struct Lanes<double> {
  using Type [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
};

/// `Rows` rows by `Vectors` vectors of c, in registers throughout.
template <int Rows, int Vectors, typename R>
MTPLAN_INLINE void block(std::int64_t k, const R *a, std::int64_t aRow,
                         std::int64_t aColumn, const R *b, std::int64_t bStride,
                         R *c, std::int64_t cStride) {
  using V = typename Lanes<R>::Type;
  constexpr std::int64_t kWide = 64 / sizeof(R);
  V sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sums[r][v] = *reinterpret_cast<const V *>(c + r * cStride + v * kWide);
  for (std::int64_t i = 0; i < k; ++i) {
    V right[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      right[v] = *reinterpret_cast<const V *>(b + i * bStride + v * kWide);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const R left = a[r * aRow + i * aColumn];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v)
        sums[r][v] += left * right[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      *reinterpret_cast<V *>(c + r * cStride + v * kWide) = sums[r][v];
}

template <int Vectors, typename R>
MTPLAN_INLINE void column(std::int64_t m, std::int64_t k, Left<R> a, const R *b,
                          std::int64_t bStride, R *c, std::int64_t cStride) {
  std::int64_t row = 0;
  for (; row + 4 <= m; row += 4)
    block<4, Vectors>(k, a.data + row * a.rowStride, a.rowStride,
                      a.columnStride, b, bStride, c + row * cStride, cStride);
  for (; row < m; ++row)
    block<1, Vectors>(k, a.data + row * a.rowStride, a.rowStride,
                      a.columnStride, b, bStride, c + row * cStride, cStride);
}

template <typename R>
MTPLAN_INLINE void
multiplyAddAny(std::int64_t m, std::int64_t n, std::int64_t k, Left<R> a,
               const R *b, std::int64_t bStride, R *c, std::int64_t cStride) {
  constexpr std::int64_t kWide = 64 / sizeof(R);
  std::int64_t j = 0;
  for (; j + 2 * kWide <= n; j += 2 * kWide)
    column<2>(m, k, a, b + j, bStride, c + j, cStride);
  for (; j < n; j += kWide)
    column<1>(m, k, a, b + j, bStride, c + j, cStride);
}

} // namespace

MTPLAN_CLONES void multiplyAdd(std::int64_t m, std::int64_t n, std::int64_t k,
                               Left<float> a, const float *b,
                               std::int64_t bStride, float *c,
                               std::int64_t cStride) {
  multiplyAddAny(m, n, k, a, b, bStride, c, cStride);
}

MTPLAN_CLONES void multiplyAdd(std::int64_t m, std::int64_t n, std::int64_t k,
                               Left<double> a, const double *b,
                               std::int64_t bStride, double *c,
                               std::int64_t cStride) {
  multiplyAddAny(m, n, k, a, b, bStride, c, cStride);
}

} // namespace mtplan::runtime::cpu
