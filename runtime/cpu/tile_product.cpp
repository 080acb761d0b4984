//===- tile_product.cpp - Products of small matrices ----------------------===//

#include "runtime/cpu/tile_product.h"

#include "runtime/backend/einsum.h"
#include "runtime/cpu/families.h"
#include "runtime/cpu/numbers.h"

namespace mtplan::runtime::cpu {

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

namespace {

/// Defines an unaligned vector of 64 bytes. The compiler splits the vector into
/// the target's registers.
template <typename R> struct Lanes;
template <> struct Lanes<float> {
  using Type [[gnu::vector_size(64), gnu::aligned(4), gnu::may_alias]] = float;
};
template <> struct Lanes<double> {
  using Type [[gnu::vector_size(64), gnu::aligned(8), gnu::may_alias]] = double;
};

/// Adds a product to `Rows` rows by `Vectors` vectors of c, in registers.
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

/// Adds a product to the first `Vectors` vectors of every row of c.
template <int Rows, int Vectors, typename R>
MTPLAN_INLINE void column(std::int64_t m, std::int64_t k, Left<R> a, const R *b,
                          std::int64_t bStride, R *c, std::int64_t cStride) {
  std::int64_t row = 0;
  for (; row + Rows <= m; row += Rows)
    block<Rows, Vectors>(k, a.data + row * a.rowStride, a.rowStride,
                         a.columnStride, b, bStride, c + row * cStride,
                         cStride);
  if constexpr (Rows > 2)
    for (; row + 2 <= m; row += 2)
      block<2, Vectors>(k, a.data + row * a.rowStride, a.rowStride,
                        a.columnStride, b, bStride, c + row * cStride, cStride);
  for (; row < m; ++row)
    block<1, Vectors>(k, a.data + row * a.rowStride, a.rowStride,
                      a.columnStride, b, bStride, c + row * cStride, cStride);
}

template <typename R> struct Product {
  std::int64_t m, n, k;
  Left<R> a;
  const R *b;
  std::int64_t bStride;
  R *c;
  std::int64_t cStride;
};

template <int Rows, int Vectors, typename R>
MTPLAN_INLINE void multiplyAddAny(const Product<R> &p) {
  constexpr std::int64_t kWide = 64 / sizeof(R);
  std::int64_t j = 0;
  for (; j + Vectors * kWide <= p.n; j += Vectors * kWide)
    column<Rows, Vectors>(p.m, p.k, p.a, p.b + j, p.bStride, p.c + j,
                          p.cStride);
  for (; j < p.n; j += kWide)
    column<Rows, 1>(p.m, p.k, p.a, p.b + j, p.bStride, p.c + j, p.cStride);
}

// The block is as large as the vector registers allow: 32 registers of 64
// bytes, 16 of 32 bytes, or 16 of 16 bytes. Loads and the latency of additions
// would limit the speed of a smaller block.
#if defined(__x86_64__)
template <typename R>
__attribute__((target("arch=x86-64-v4"))) void onV4(const Product<R> &p) {
  multiplyAddAny<6, 4>(p);
}
template <typename R>
__attribute__((target("arch=x86-64-v3"))) void onV3(const Product<R> &p) {
  multiplyAddAny<6, 1>(p);
}
#endif
template <typename R> void onAny(const Product<R> &p) {
  multiplyAddAny<2, 1>(p);
}

template <typename R> auto best() {
#if defined(__x86_64__)
  const bool v3 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (v3 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return onV4<R>;
  if (v3)
    return onV3<R>;
#endif
  return onAny<R>;
}

template <typename R> void multiplyAddBest(const Product<R> &p) {
  static const auto kBest = best<R>();
  kBest(p);
}

} // namespace

void multiplyAdd(std::int64_t m, std::int64_t n, std::int64_t k, Left<float> a,
                 const float *b, std::int64_t bStride, float *c,
                 std::int64_t cStride) {
  multiplyAddBest<float>({m, n, k, a, b, bStride, c, cStride});
}

void multiplyAdd(std::int64_t m, std::int64_t n, std::int64_t k, Left<double> a,
                 const double *b, std::int64_t bStride, double *c,
                 std::int64_t cStride) {
  multiplyAddBest<double>({m, n, k, a, b, bStride, c, cStride});
}

//===----------------------------------------------------------------------===//
// Einsums in double precision
//===----------------------------------------------------------------------===//

namespace {

constexpr std::int64_t kRows = 64, kColumns = 64, kDepth = 128;

class DoubleProduct : public Kernel {
public:
  DoubleProduct(const KernelSpec &theSpec, const ProductShape &theShape,
                SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), shape(theShape),
        outer(placesOf(shape.outer)), summed(placesOf(shape.summed)) {
    context->reserve(
        0, (2 * kRows * kColumns + kRows * kDepth + kDepth * kColumns) *
               sizeof(double));
  }

  void run(const Invocation &call) override {
    const std::int64_t rowTiles = (shape.m.size + kRows - 1) / kRows;
    const std::int64_t columnTiles = (shape.n.size + kColumns - 1) / kColumns;
    context->forEach(
        static_cast<std::int64_t>(outer.size()) * rowTiles * columnTiles,
        [&](std::int64_t task, int thread) {
          runTile(
              call,
              outer[static_cast<std::size_t>(task / (rowTiles * columnTiles))],
              task / columnTiles % rowTiles * kRows,
              task % columnTiles * kColumns, thread);
        });
  }

  double flops() const override {
    return 2.0 *
           static_cast<double>(shape.m.size * shape.n.size * shape.k.size) *
           static_cast<double>(outer.size() * summed.size());
  }

private:
  void runTile(const Invocation &call, const Place &place, std::int64_t row,
               std::int64_t column, int thread) const {
    const std::int64_t m = std::min(kRows, shape.m.size - row);
    const std::int64_t n = std::min(kColumns, shape.n.size - column);
    auto *sum = context->ofThread<double>(thread);
    double *term = sum + kRows * kColumns, *left = term + kRows * kColumns;
    double *right = left + kRows * kDepth;
    std::fill_n(sum, kRows * kColumns, 0.0);
    for (const Place &step : summed) {
      double *into = summed.size() == 1 ? sum : term;
      std::fill_n(into, kRows * kColumns, 0.0);
      for (std::int64_t k = 0; k < shape.k.size; k += kDepth) {
        const std::int64_t depth = std::min(kDepth, shape.k.size - k);
        gather(spec.inputs[shape.lhs].type, call.inputs[shape.lhs],
               place.a + step.a + row * shape.m.a + k * shape.k.a, m, depth,
               shape.m.a, shape.k.a, left, kDepth);
        gather(spec.inputs[shape.rhs].type, call.inputs[shape.rhs],
               place.b + step.b + k * shape.k.b + column * shape.n.b, depth, n,
               shape.k.b, shape.n.b, right, kColumns);
        multiplyAdd(m, kColumns, depth, Left<double>{left, kDepth, 1}, right,
                    kColumns, into, kColumns);
      }
      for (std::int64_t i = 0; into == term && i < kRows * kColumns; ++i)
        sum[i] += term[i];
    }
    for (std::int64_t r = 0; r < m; ++r) {
      double *from = sum + r * kColumns;
      if (spec.inputs.size() == 3)
        for (std::int64_t j = 0; j < n; ++j)
          from[j] +=
              readElement(spec.inputs[2].type, call.inputs[2], column + j);
      narrow(spec.outputs[0].type, call.outputs[0],
             place.c + (row + r) * shape.m.c + column, n, from);
    }
  }

  /// Copies a matrix to dense rows, zero-padded to `width`.
  static void gather(ElementType type, const void *data, std::int64_t first,
                     std::int64_t rows, std::int64_t columns,
                     std::int64_t rowStep, std::int64_t columnStep, double *to,
                     std::int64_t width) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c)
        to[r * width + c] =
            readElement(type, data, first + r * rowStep + c * columnStep);
      std::fill(to + r * width + columns, to + (r + 1) * width, 0.0);
    }
  }

  const SharedContext context;
  const KernelSpec spec;
  const ProductShape shape;
  const std::vector<Place> outer, summed;
};

} // namespace

MadeKernel makeDoubleProduct(const KernelSpec &spec,
                             const SharedContext &context) {
  return std::make_unique<DoubleProduct>(spec, *ProductShape::of(spec),
                                         context);
}

} // namespace mtplan::runtime::cpu
