//===- dropout.cu - Dropout over a piece of a tensor ----------------------===//

#include <algorithm>

#include "runtime/cuda/families.h"
#include "runtime/cuda/mask.cuh"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr int kMostDims = 8;

/// Where a piece lies in the whole: dimensions that it has whole are one with
/// those before them.
struct Piece {
  int dims = 1;
  std::int64_t sizes[kMostDims] = {1}, offsets[kMostDims] = {},
               globals[kMostDims] = {1};

  /// Index in the whole of the first element of a row: of the last dimension.
  __device__ std::int64_t indexOf(std::int64_t row) const {
    std::int64_t index = offsets[dims - 1], size = globals[dims - 1];
    for (int d = dims - 2; d >= 0; --d) {
      index += (offsets[d] + row % sizes[d]) * size;
      row /= sizes[d];
      size *= globals[d];
    }
    return index;
  }
};

Piece pieceOfWhole(const KernelSpec &spec) {
  const TensorView &view = spec.outputs[0];
  // From the last on; turned round below.
  std::vector<std::int64_t> sizes, offsets, globals;
  for (std::size_t d = view.shape.size(); d-- > 0;) {
    const Span span = pieceOf(view, d);
    const std::int64_t size = view.shape[d];
    if (!sizes.empty() && sizes.back() == globals.back()) {
      offsets.back() = span.offset * globals.back();
      globals.back() *= span.global;
      sizes.back() *= size;
      continue;
    }
    sizes.push_back(size);
    offsets.push_back(span.offset);
    globals.push_back(span.global);
  }
  if (sizes.size() > kMostDims)
    refuse(spec, "is cut along more than " + std::to_string(kMostDims) +
                     " dimensions");
  Piece piece;
  piece.dims = std::max(1, static_cast<int>(sizes.size()));
  std::reverse_copy(sizes.begin(), sizes.end(), piece.sizes);
  std::reverse_copy(offsets.begin(), offsets.end(), piece.offsets);
  std::reverse_copy(globals.begin(), globals.end(), piece.globals);
  return piece;
}

/// A thread for each pack of each row.
template <typename R>
__global__ void dropOut(Operand from, Result to, Piece piece, std::int64_t rows,
                        std::int64_t before, Masks masks) {
  const std::int64_t width = piece.sizes[piece.dims - 1];
  const std::int64_t packs = (width + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= rows * packs)
    return;
  const std::int64_t row = pack / packs, h = pack % packs * kPack;
  R x[kPack];
  load(from, row * width + h, packAt(h, width), x);
  masks.now().apply(before + piece.indexOf(row) + h, x);
  store(to, row * width + h, packAt(h, width), x);
}

template <typename R> class Dropout final : public Kernel {
public:
  Dropout(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        rate(spec.number("rate", 0.0)), name(spec.text("mask", "")),
        piece(pieceOfWhole(spec)) {
    const TensorView &view = spec.outputs[0];
    for (std::size_t d = 0; d < view.shape.size(); ++d)
      whole *= pieceOf(view, d).global;
  }

  void run(const Invocation &call) override {
    const std::int64_t width = piece.sizes[piece.dims - 1];
    const std::int64_t rows = spec.outputs[0].elements() / width;
    constexpr unsigned kThreads = 256;
    launch(*context,
           {blocksFor(rows * blocksFor(width, kPack), kThreads), 1, kThreads},
           dropOut<R>, operandOf(spec, call, 0), resultOf(spec, call, 0), piece,
           rows, call.microBatch * whole, Masks(call, name, rate));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const double rate;
  const std::string name;
  const Piece piece;
  std::int64_t whole = 1;
};

} // namespace

MadeKernel makeDropout(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Dropout>(spec, context);
}

} // namespace mtplan::runtime::cuda
