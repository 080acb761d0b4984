//===- product.cpp - Einsums by oneDNN ------------------------------------===//
//
// The shape of the product alone determines how its result is divided into
// tiles, and one thread computes a tile. If several samples or several tiles of
// rows use the same columns of the weight, these columns are packed into
// oneDNN's layout once per run, one panel of columns at a time. If samples are
// summed, a tile computes one product per sample and adds the products in
// order. If, in addition, operand a is column-major, a task transposes the rows
// of a tile once for several adjacent tiles. oneDNN's fastest kernels write
// only dense matrices. Therefore a tile is computed in dense memory and then
// copied into the result or added to it. Products may write directly into a
// result that is one dense column of tiles.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include "runtime/backend/einsum.h"
#include "runtime/backend/followed.h"
#include "runtime/cpu/families.h"
#include "runtime/cpu/matrix_product.h"
#include "runtime/cpu/sums.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime::cpu {

namespace {

constexpr std::int64_t kTileRows = 256, kTileColumns = 256;
/// If samples are summed, these constants limit the rows of a tile, and the
/// number of adjacent tiles that share operand a, so that the sums of these
/// tiles fit into the L2 cache.
constexpr std::int64_t kSummedRows = 128, kTogether = 4;
constexpr std::size_t kPackedBytes = std::size_t{16} << 20;

/// Divides one dimension into tiles of equal size. The last tile may be
/// smaller.
struct Cut {
  std::int64_t total, each, tiles;

  Cut(std::int64_t size, std::int64_t largest) : total(size) {
    const std::int64_t parts = (size + largest - 1) / largest;
    each = std::min(size, ((size + parts - 1) / parts + 15) / 16 * 16);
    tiles = (size + each - 1) / each;
  }
  std::int64_t first(std::int64_t tile) const { return tile * each; }
  std::int64_t size(std::int64_t tile) const {
    return std::min(each, total - tile * each);
  }
  bool isLast(std::int64_t tile) const { return size(tile) != each; }
};

struct Accumulation {
  std::size_t result = 0; ///< result index of the accumulator; 0: none
  FirstTerm firstTerm;    ///< the run that stores instead of adding

  bool adds(const Invocation &call) const {
    return result > 0 && !firstTerm.isOf(call.microBatch, call.copy);
  }
};

class Product : public Kernel {
public:
  /// \param spec  if there is an accumulator, it must be the only result
  Product(const KernelSpec &spec, const ProductShape &theShape,
          const Accumulation &theSum, SharedContext theContext)
      : context(std::move(theContext)), shape(theShape), accumulation(theSum),
        rows(shape.m.size, shape.summed.empty() ? kTileRows : kSummedRows),
        columns(shape.n.size, kTileColumns), outer(placesOf(shape.outer)),
        summed(placesOf(shape.summed)),
        transposes(!shape.summed.empty() && shape.m.a == 1 && shape.k.a > 1) {
    const TensorView &lhs = spec.inputs[shape.lhs],
                     &rhs = spec.inputs[shape.rhs];
    lhsType = lhs.type;
    rhsType = rhs.type;
    outType = spec.outputs[0].type;
    const bool brain = lhsType == ElementType::bf16 &&
                       rhsType == ElementType::bf16 && multipliesBf16();
    inType = brain ? ElementType::bf16 : ElementType::f32;
    lhsWidened = lhsType == inType ? 0 : lhs.elements();
    rhsWidened = rhsType == inType ? 0 : rhs.elements();
    if (spec.inputs.size() == 3) {
      biasType = spec.inputs[2].type;
      biasSize = shape.n.size;
    }
    tileType = brain && outType == ElementType::bf16 && shape.summed.empty()
                   ? ElementType::bf16
                   : ElementType::f32;
    inPlace = shape.summed.empty() && outType == tileType &&
              shape.m.c == shape.n.size && columns.tiles == 1 &&
              accumulation.result == 0;
    orderWeights();
    makeTiles();
    reserve();
  }

  void run(const Invocation &call) override {
    std::byte *memory = context->shared<std::byte>();
    const void *a =
        widened(lhsType, call.inputs[shape.lhs], lhsWidened, memory);
    const void *b =
        widened(rhsType, call.inputs[shape.rhs], rhsWidened, memory);
    const float *bias = nullptr;
    if (biasSize > 0)
      bias = static_cast<const float *>(
          biasType == ElementType::f32
              ? call.inputs[2]
              : widened(biasType, call.inputs[2], biasSize, memory));
    for (std::int64_t first = 0; first < columns.tiles; first += panel)
      runPanel({a, b, packs ? memory : nullptr, bias,
                call.outputs[accumulation.result], accumulation.adds(call),
                first, std::min(panel, columns.tiles - first)},
               memory);
  }

  double flops() const override {
    return 2.0 *
           static_cast<double>(shape.m.size * shape.n.size * shape.k.size) *
           static_cast<double>(outer.size() * summed.size());
  }

private:
  /// Determines the distinct weights, the weight that each iteration of the
  /// loops uses, and whether weights are packed.
  void orderWeights() {
    for (const Place &place : outer)
      for (const Place &term : summed) {
        std::size_t i = 0;
        while (i < weights.size() && weights[i] != place.b + term.b)
          ++i;
        if (i == weights.size())
          weights.push_back(place.b + term.b);
        weightOf.push_back(i);
      }
    // The decision to pack must not depend on the number of samples, because
    // packing changes the bits of a product.
    const bool fits =
        static_cast<std::size_t>(shape.k.size * columns.each) * sizeof(float) <=
        kPackedBytes;
    packs = rows.tiles > 1;
    for (const LetterStep &step : shape.outer)
      packs |= step.b == 0;
    packs &= fits;
  }

  /// Prepares products of four shapes, because the last row and the last column
  /// of tiles may be smaller.
  void makeTiles() {
    for (int kind = 0; kind < 4; ++kind) {
      const std::int64_t m = rows.size(kind & 1 ? rows.tiles - 1 : 0);
      const std::int64_t n = columns.size(kind & 2 ? columns.tiles - 1 : 0);
      tiles.emplace_back(
          MatrixShape{.m = m,
                      .n = n,
                      .k = shape.k.size,
                      .aRow = transposes ? shape.k.size : shape.m.a,
                      .aColumn = transposes ? 1 : shape.k.a,
                      .bRow = shape.k.b,
                      .bColumn = shape.n.b,
                      .cRow = n,
                      .inputs = inType,
                      .result = tileType,
                      .biased = biasSize > 0,
                      // The layout of a packed b may depend on m.
                      .packed = packs && !(kind & 1)},
          context->threads);
    }
  }
  const MatrixProduct &tileAt(std::int64_t row, std::int64_t column) const {
    return tiles[(rows.isLast(row) ? 1 : 0) + (columns.isLast(column) ? 2 : 0)];
  }

  void reserve() {
    std::size_t scratch = 0;
    for (const MatrixProduct &tile : tiles) {
      scratch = std::max(scratch, tile.scratchBytes());
      packedSize =
          std::max(packedSize, roundUp(tile.packedBytes(), Scratch::kLine));
    }
    tileBytes =
        inPlace ? 0
                : roundUp(static_cast<std::size_t>(rows.each * columns.each) *
                              sizeof(float),
                          Scratch::kLine);
    std::size_t common = 0;
    for (std::int64_t count : {lhsWidened, rhsWidened, biasSize})
      common += roundUp(static_cast<std::size_t>(count) * sizeof(float),
                        Scratch::kLine);
    const std::size_t column = packedSize * weights.size();
    panel = columns.tiles;
    if (column > 0)
      panel = std::clamp<std::int64_t>(
          static_cast<std::int64_t>(kPackedBytes / column), 1, panel);
    common += column * static_cast<std::size_t>(panel);
    // With many threads, keeping all of them busy saves more time than sharing
    // a transposition.
    if (!shape.summed.empty())
      together = std::clamp<std::int64_t>(
          static_cast<std::int64_t>(outer.size()) * rows.tiles * columns.tiles /
              (4 * context->threads),
          1, kTogether);
    transposedBytes =
        transposes ? roundUp(static_cast<std::size_t>(rows.each * shape.k.size *
                                                      bytesOf(inType)),
                             Scratch::kLine)
                   : 0;
    // Each thread needs memory for the sums of its tiles and for one term.
    context->reserve(common,
                     roundUp(scratch, Scratch::kLine) + transposedBytes +
                         static_cast<std::size_t>(together + 1) * tileBytes);
  }

  /// Converts `count` elements to floats at `memory`, and advances `memory`.
  /// Returns `data` itself if `count` is 0.
  const void *widened(ElementType type, const void *data, std::int64_t count,
                      std::byte *&memory) const {
    if (count == 0)
      return data;
    auto *to = reinterpret_cast<float *>(memory);
    context->forRange(
        count, kTask, [&](std::int64_t first, std::int64_t piece, int) {
          widenInto(type, at(data, type, first), piece, to + first);
        });
    memory += roundUp(static_cast<std::size_t>(count) * sizeof(float),
                      Scratch::kLine);
    return to;
  }

  const std::byte *bAt(const void *b, std::int64_t place,
                       std::int64_t column) const {
    return at(b, inType, place + columns.first(column) * shape.n.b);
  }

  struct Panel {
    const void *a, *b;
    const std::byte *packed; ///< null if b is not packed
    const float *bias;
    void *c;
    bool adds; ///< accumulates into c
    std::int64_t first, count;

    const float *biasAt(std::int64_t column) const {
      return bias ? bias + column : nullptr;
    }
  };

  /// Packs the weights of a panel if necessary, and computes its tiles.
  void runPanel(const Panel &all, std::byte *packed) {
    const std::int64_t count = all.count;
    if (packs)
      context->forEach(
          static_cast<std::int64_t>(weights.size()) * count,
          [&](std::int64_t task, int thread) {
            const std::int64_t column = all.first + task % count;
            tileAt(0, column).pack(
                thread,
                bAt(all.b, weights[static_cast<std::size_t>(task / count)],
                    column),
                packed + static_cast<std::size_t>(task) * packedSize);
          });
    const std::int64_t groups = (count + together - 1) / together;
    context->forEach(
        static_cast<std::int64_t>(outer.size()) * rows.tiles * groups,
        [&](std::int64_t task, int thread) {
          const std::int64_t column = task % groups * together;
          runTiles(all, static_cast<std::size_t>(task / groups / rows.tiles),
                   task / groups % rows.tiles, column,
                   std::min(together, count - column), thread);
        });
  }

  /// Computes `count` adjacent tiles of one row of tiles. `from` is the first
  /// column tile within the panel.
  void runTiles(const Panel &all, std::size_t place, std::int64_t row,
                std::int64_t from, std::int64_t count, int thread) const {
    auto *sums = context->ofThread<std::byte>(thread);
    std::byte *term = sums + static_cast<std::size_t>(together) * tileBytes;
    std::byte *transposed = term + tileBytes;
    std::byte *scratch = transposed + transposedBytes;
    const std::int64_t m = rows.size(row);
    const std::int64_t to = outer[place].c + rows.first(row) * shape.m.c;
    for (std::size_t s = 0; s < summed.size(); ++s) {
      const void *left =
          at(all.a, inType,
             outer[place].a + summed[s].a + rows.first(row) * shape.m.a);
      if (transposes) {
        transpose(inType, left, shape.k.a, shape.k.size, m, transposed);
        left = transposed;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t column = all.first + from + i;
        const void *right =
            all.packed && !rows.isLast(row)
                ? all.packed + (weightOf[place * summed.size() + s] *
                                    static_cast<std::size_t>(all.count) +
                                static_cast<std::size_t>(from + i)) *
                                   packedSize
                : bAt(all.b, outer[place].b + summed[s].b, column);
        std::byte *sum = sums + static_cast<std::size_t>(i) * tileBytes;
        void *into = s == 0 ? sum : term;
        if (inPlace)
          into = at(all.c, outType, to + columns.first(column));
        tileAt(row, column)
            .run(thread, left, right, all.biasAt(columns.first(column)), into,
                 scratch);
        if (s > 0)
          addTo(reinterpret_cast<const float *>(term), m * columns.size(column),
                reinterpret_cast<float *>(sum));
      }
    }
    if (!inPlace)
      for (std::int64_t i = 0; i < count; ++i)
        putTile(sums + static_cast<std::size_t>(i) * tileBytes, all, to, m,
                all.first + from + i);
  }

  /// Copies a tile of m rows to the result, or adds the tile to the result. The
  /// tile's first row lies in the row of the result that begins at element
  /// `to`.
  void putTile(const std::byte *tile, const Panel &all, std::int64_t to,
               std::int64_t m, std::int64_t column) const {
    const std::int64_t n = columns.size(column);
    void *c = all.c;
    to += columns.first(column);
    for (std::int64_t r = 0; r < m; ++r, to += shape.m.c) {
      if (all.adds)
        addTo(reinterpret_cast<const float *>(tile) + r * n, n,
              reinterpret_cast<float *>(at(c, outType, to)));
      else if (tileType == outType)
        std::memcpy(at(c, outType, to), at(tile, tileType, r * n),
                    static_cast<std::size_t>(n * bytesOf(tileType)));
      else
        narrow(outType, c, to, n,
               reinterpret_cast<const float *>(tile) + r * n);
    }
  }

  const SharedContext context;
  const ProductShape shape;
  const Accumulation accumulation;
  const Cut rows, columns;
  const std::vector<Place> outer, summed;
  const bool transposes;
  ElementType lhsType, rhsType, outType, biasType = ElementType::f32;
  ElementType inType, tileType; ///< types that oneDNN reads and writes
  /// lhsWidened and rhsWidened count the elements of a and b, or are 0 if the
  /// operand is not converted. biasSize counts the elements of the bias.
  std::int64_t lhsWidened = 0, rhsWidened = 0, biasSize = 0;
  bool inPlace = false; ///< products write into the result itself
  bool packs = false;
  std::int64_t panel = 1;            ///< column tiles packed at a time
  std::int64_t together = 1;         ///< adjacent tiles per task
  std::vector<std::int64_t> weights; ///< offsets in b of the distinct weights
  std::vector<std::size_t> weightOf; ///< each iteration's index in `weights`
  std::vector<MatrixProduct> tiles;
  std::size_t packedSize = 0, tileBytes = 0, transposedBytes = 0;
};

} // namespace

MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context) {
  const std::optional<ProductShape> shape = ProductShape::of(spec);
  if (!shape)
    return nullptr;
  // A tile adds the bias in every product, so a biased einsum must not sum
  // several products.
  if (spec.inputs.size() == 3 && !shape->summed.empty())
    return nullptr;
  if (usesDouble(spec))
    return makeDoubleProduct(spec, context);
  return std::make_unique<Product>(spec, *shape, Accumulation(), context);
}

MadeKernel makeFollowedProduct(const KernelSpec &spec,
                               const SharedContext &context) {
  auto [product, second] = halvesOf(spec);
  if (second.kernel != "accumulate" || product.inputs.size() != 2 ||
      second.outputs[0].type != ElementType::f32 || usesDouble(product))
    return nullptr;
  product.outputs = second.outputs;
  const std::optional<ProductShape> shape = ProductShape::of(product);
  if (!shape)
    return nullptr;
  return std::make_unique<Product>(
      product, *shape, Accumulation{1, firstTermOf(spec.settings)}, context);
}

} // namespace mtplan::runtime::cpu
