//===- product_double.cpp - Einsums in double precision -------------------===//

#include "runtime/cpu/product_double.h"

#include "runtime/cpu/tile_product.h"

namespace mtplan::runtime::cpu {
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

  /// Gathers the rows of a matrix, zero-padded to `width`.
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

MadeKernel makeDoubleProduct(const KernelSpec &spec, const ProductShape &shape,
                             const SharedContext &context) {
  return std::make_unique<DoubleProduct>(spec, shape, context);
}

} // namespace mtplan::runtime::cpu
