//===- product.cpp - Einsums by oneDNN ------------------------------------===//
//
// The result is cut into tiles, by shapes alone; a tile is one thread's. Where
// samples are rows, their tiles share the weight's columns, which are brought
// into oneDNN's order once per run, a panel of columns at a time. Where samples
// are summed, a tile takes them in turn: the product of each by itself, then
// its sum with those before. Tiles are dense, as oneDNN's fastest kernels write
// nothing else, and copied to where they belong.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include "runtime/cpu/column_sums.h"
#include "runtime/cpu/matrix_product.h"
#include "runtime/cpu/product_double.h"
#include "runtime/cpu/product_shape.h"

namespace mtplan::runtime::cpu {

namespace {

constexpr std::int64_t kTileRows = 256, kTileColumns = 256;
/// What packed weights may take; columns are packed as many tiles at a time.
constexpr std::size_t kPackedBytes = std::size_t{16} << 20;

/// One dimension cut into equal tiles but for the last.
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

class Product : public Kernel {
public:
  Product(const KernelSpec &spec, const ProductShape &theShape,
          SharedContext theContext)
      : context(std::move(theContext)), shape(theShape),
        rows(shape.m.size, kTileRows), columns(shape.n.size, kTileColumns),
        outer(placesOf(shape.outer)), summed(placesOf(shape.summed)) {
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
              shape.m.c == shape.n.size && columns.tiles == 1;
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
      runPanel(a, b, bias, call.outputs[0], memory, first,
               std::min(panel, columns.tiles - first));
  }

  double flops() const override {
    return 2.0 *
           static_cast<double>(shape.m.size * shape.n.size * shape.k.size) *
           static_cast<double>(outer.size() * summed.size());
  }

private:
  /// Which packed weight each outer step takes.
  void orderWeights() {
    for (const Place &place : outer) {
      std::size_t i = 0;
      while (i < weights.size() && weights[i] != place.b)
        ++i;
      if (i == weights.size())
        weights.push_back(place.b);
      weightOf.push_back(i);
    }
    // By what is looped over, not how often: oneDNN multiplies otherwise by
    // what is packed, and one sample has to have the bits of one of many.
    const bool fits =
        static_cast<std::size_t>(shape.k.size * columns.each) * sizeof(float) <=
        kPackedBytes;
    packs = rows.tiles > 1;
    for (const LetterStep &step : shape.outer)
      packs |= step.b == 0;
    packs &= shape.summed.empty() && fits;
  }

  /// Tiles come in up to four sizes: the last row and column may be short.
  void makeTiles() {
    for (int kind = 0; kind < 4; ++kind) {
      const std::int64_t m = rows.size(kind & 1 ? rows.tiles - 1 : 0);
      const std::int64_t n = columns.size(kind & 2 ? columns.tiles - 1 : 0);
      tiles.emplace_back(
          MatrixShape{.m = m,
                      .n = n,
                      .k = shape.k.size,
                      .aRow = shape.m.a,
                      .aColumn = shape.k.a,
                      .bRow = shape.k.b,
                      .bColumn = shape.n.b,
                      .cRow = n,
                      .inputs = inType,
                      .result = tileType,
                      .biased = biasSize > 0,
                      // The order of a packed b may depend on the rows.
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
    tileBytes = inPlace ? 0
                        : static_cast<std::size_t>(rows.each * columns.each) *
                              sizeof(float);
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
    // Two tiles: the sum and the next term.
    context->reserve(common, roundUp(scratch, Scratch::kLine) + 2 * tileBytes);
  }

  /// A whole operand as floats, at the start of `memory`, which moves on.
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

  void runPanel(const void *a, const void *b, const float *bias, void *c,
                std::byte *packed, std::int64_t first, std::int64_t count) {
    if (packs)
      context->forEach(
          static_cast<std::int64_t>(weights.size()) * count,
          [&](std::int64_t task, int thread) {
            const std::int64_t column = first + task % count;
            tileAt(0, column).pack(
                thread,
                bAt(b, weights[static_cast<std::size_t>(task / count)], column),
                packed + static_cast<std::size_t>(task) * packedSize);
          });
    const auto places = static_cast<std::int64_t>(outer.size());
    context->forEach(places * rows.tiles * count, [&](std::int64_t task,
                                                      int thread) {
      const std::int64_t column = first + task % count;
      const std::int64_t row = task / count % rows.tiles;
      const auto place = static_cast<std::size_t>(task / count / rows.tiles);
      const std::byte *ready =
          packs ? packed + (weightOf[place] * static_cast<std::size_t>(count) +
                            static_cast<std::size_t>(column - first)) *
                               packedSize
                : nullptr;
      runTile(a, b, ready, bias, c, outer[place], row, column, thread);
    });
  }

  void runTile(const void *a, const void *b, const std::byte *ready,
               const float *bias, void *c, const Place &place, std::int64_t row,
               std::int64_t column, int thread) const {
    const MatrixProduct &tile = tileAt(row, column);
    if (rows.isLast(row))
      ready = nullptr;
    const float *tileBias = bias ? bias + columns.first(column) : nullptr;
    const auto aAt = [&](std::int64_t term) {
      return at(a, inType, place.a + term + rows.first(row) * shape.m.a);
    };
    const std::int64_t to =
        place.c + rows.first(row) * shape.m.c + columns.first(column);
    auto *own = context->ofThread<float>(thread);
    std::byte *scratch = context->ofThread<std::byte>(thread) + 2 * tileBytes;
    if (inPlace) {
      tile.run(thread, aAt(0), ready ? ready : bAt(b, place.b, column),
               tileBias, at(c, outType, to), scratch);
      return;
    }
    const std::int64_t m = rows.size(row), n = columns.size(column);
    float *sum = own, *term = own + tileBytes / sizeof(float);
    for (std::size_t s = 0; s < summed.size(); ++s) {
      tile.run(thread, aAt(summed[s].a),
               ready ? ready : bAt(b, place.b + summed[s].b, column), tileBias,
               s == 0 ? sum : term, scratch);
      if (s > 0)
        addTo(term, m * n, sum);
    }
    for (std::int64_t r = 0; r < m; ++r) {
      if (tileType == outType)
        std::memcpy(at(c, outType, to + r * shape.m.c),
                    at(static_cast<const void *>(sum), tileType, r * n),
                    static_cast<std::size_t>(n * bytesOf(tileType)));
      else
        narrow(outType, c, to + r * shape.m.c, n, sum + r * n);
    }
  }

  const SharedContext context;
  const ProductShape shape;
  const Cut rows, columns;
  const std::vector<Place> outer, summed;
  ElementType lhsType, rhsType, outType, biasType = ElementType::f32;
  ElementType inType, tileType; ///< of what oneDNN reads, and writes
  std::int64_t lhsWidened = 0,  ///< elements, if it has to be; else 0
      rhsWidened = 0, biasSize = 0;
  bool inPlace = false; ///< tiles are computed where they belong
  bool packs = false;
  std::int64_t panel = 1;            ///< tiles of columns packed at a time
  std::vector<std::int64_t> weights; ///< where b's different ones begin
  std::vector<std::size_t> weightOf; ///< by outer step
  std::vector<MatrixProduct> tiles;
  std::size_t packedSize = 0, tileBytes = 0;
};

} // namespace

MadeKernel makeProduct(const KernelSpec &spec, const SharedContext &context) {
  const std::optional<ProductShape> shape = ProductShape::of(spec);
  if (!shape)
    return nullptr;
  // A bias belongs to a sum once.
  if (spec.inputs.size() == 3 && !shape->summed.empty())
    return nullptr;
  if (usesDouble(spec))
    return makeDoubleProduct(spec, *shape, context);
  return std::make_unique<Product>(spec, *shape, context);
}

} // namespace mtplan::runtime::cpu
