//===- tile_product.h - Products of small matrices --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CPU_TILE_PRODUCT_H
#define MTPLAN_RUNTIME_CPU_TILE_PRODUCT_H

#include <cstdint>

namespace mtplan::runtime::cpu {

/// A tile's number of columns is a multiple of kLanes.
inline constexpr std::int64_t kLanes = 16;

/// Describes a row-major or column-major operand; strides are in elements.
template <typename R> struct Left {
  const R *data;
  std::int64_t rowStride, columnStride;
};

/// Computes c[m, n] += a[m, k] b[k, n], in the order of k. `bStride` and
/// `cStride` are row strides in elements; n must be a multiple of kLanes.
void multiplyAdd(std::int64_t m, std::int64_t n, std::int64_t k, Left<float> a,
                 const float *b, std::int64_t bStride, float *c,
                 std::int64_t cStride);
void multiplyAdd(std::int64_t m, std::int64_t n, std::int64_t k, Left<double> a,
                 const double *b, std::int64_t bStride, double *c,
                 std::int64_t cStride);

} // namespace mtplan::runtime::cpu

#endif // MTPLAN_RUNTIME_CPU_TILE_PRODUCT_H
