//===- embedding.cu - Lookups, and their gradients ------------------------===//
//
// Gradients are summed without atomics: tokens are put in the order of their
// rows and places, and one block adds up the tokens of one row of the table,
// sample by sample.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include "runtime/cuda/column_sums.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr unsigned kThreads = 256;

/// The rows of the table that are here.
struct Held {
  std::int64_t offset, count;

  /// Of a token, or -1.
  __device__ std::int64_t row(std::int32_t id) const {
    const std::int64_t at = std::int64_t{id} - offset;
    return at >= 0 && at < count ? at : -1;
  }
};

struct LookupSource {
  const std::int32_t *ids;
  Held held;
  __device__ SourceRows operator()(std::int64_t token) const {
    return {held.row(ids[token]), -1};
  }
};

template <typename R> class Embedding final : public Kernel {
public:
  Embedding(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)),
        spec(theSpec), held{pieceOf(spec.inputs[1], 0).offset,
                            spec.inputs[1].shape[0]} {}

  void run(const Invocation &call) override {
    gather<R>(
        *context, operandOf(spec, call, 1), {nullptr, ElementType::f32},
        resultOf(spec, call, 0), spec.inputs[0].elements(),
        spec.inputs[1].shape[1],
        LookupSource{static_cast<const std::int32_t *>(call.inputs[0]), held});
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Held held;
};

/// A token that knows its row; those of other ranks come last.
struct Placed {
  std::int64_t row, token;
};

/// A thread for each token counts those that come before it. Of the square of
/// their number, but an operation each: a fraction of a millisecond for 64 Ki
/// tokens, and one launch.
__global__ void sortTokens(const std::int32_t *ids, std::int64_t tokens,
                           Held held, Placed *sorted) {
  __shared__ std::int64_t rows[kThreads];
  const std::int64_t mine = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  auto rowOf = [&](std::int64_t token) {
    const std::int64_t row = token < tokens ? held.row(ids[token]) : -1;
    return row < 0 ? held.count : row;
  };
  const std::int64_t row = rowOf(mine);
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < tokens; first += kThreads) {
    __syncthreads(); // who reads those before has done so
    rows[threadIdx.x] = rowOf(first + threadIdx.x);
    __syncthreads();
    const std::int64_t count =
        tokens - first < kThreads ? tokens - first : std::int64_t{kThreads};
    for (std::int64_t i = 0; i < count; ++i)
      before += rows[i] < row || (rows[i] == row && first + i < mine) ? 1 : 0;
  }
  if (mine < tokens)
    sorted[before] = {row, mine};
}

/// A block for each token: the first of its row adds up all of them.
template <typename R>
__global__ void sumTokens(Operand from, Result to, const Placed *sorted,
                          std::int64_t tokens, std::int64_t ofSample, Held held,
                          std::int64_t width) {
  const std::int64_t first = blockIdx.x;
  const std::int64_t row = sorted[first].row;
  if (row >= held.count || (first > 0 && sorted[first - 1].row == row))
    return;
  packsOfRow(width, [&](std::int64_t h, int count) {
    R sum[kPack] = {}, term[kPack], x[kPack];
    std::int64_t i = first;
    while (i < tokens && sorted[i].row == row) {
      const std::int64_t sample = sorted[i].token / ofSample;
      for (int e = 0; e < kPack; ++e)
        term[e] = R(0);
      for (; i < tokens && sorted[i].row == row &&
             sorted[i].token / ofSample == sample;
           ++i) {
        load(from, sorted[i].token * width + h, count, x);
        for (int e = 0; e < kPack; ++e)
          term[e] += x[e];
      }
      for (int e = 0; e < kPack; ++e)
        sum[e] += term[e];
    }
    store(to, row * width + h, count, sum);
  });
}

template <typename R> struct TokenTerm {
  Operand from;
  const std::int32_t *ids;
  Held held;
  std::int64_t row, width;
  __device__ void operator()(std::int64_t token, std::int64_t column,
                             Several<R, 1> &sums) const {
    if (held.row(ids[token]) == row)
      sums[0] += loadOne<R>(from, token * width + column);
  }
};

template <typename R> class EmbeddingGrad final : public Kernel {
public:
  EmbeddingGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)),
        spec(theSpec), held{pieceOf(spec.outputs[0], 0).offset,
                            spec.outputs[0].shape[0]},
        width(spec.outputs[0].shape[1]), tokens(spec.inputs[0].elements()) {
    sizes.samples = spec.inputs[0].shape.empty() ? 1 : spec.inputs[0].shape[0];
    sizes.rows = tokens / sizes.samples;
    sizes.columns = width;
    context->reserve(isSmall()
                         ? columnScratch<R>(sizes, 1)
                         : static_cast<std::size_t>(tokens) * sizeof(Placed));
  }

  void run(const Invocation &call) override {
    if (isSmall())
      sumByRow(call);
    else
      sumByToken(call);
  }

private:
  /// Tables of so few rows (types of tokens) that one block a row would have
  /// all tokens to add up: the gradients are read once for each row.
  static constexpr std::int64_t kFewRows = 4;
  bool isSmall() const { return held.count <= kFewRows; }

  void sumByRow(const Invocation &call) const {
    const TensorView &view = spec.outputs[0];
    for (std::int64_t row = 0; row < held.count; ++row) {
      const Result to{static_cast<std::byte *>(call.outputs[0]) +
                          row * width * bytesOf(view.type),
                      view.type};
      sumColumns<R, 1>(
          *context, sizes, context->shared<R>(), {{to}},
          TokenTerm<R>{operandOf(spec, call, 1),
                       static_cast<const std::int32_t *>(call.inputs[0]), held,
                       row, width});
    }
  }

  void sumByToken(const Invocation &call) const {
    const TensorView &view = spec.outputs[0];
    MTPLAN_CUDA(cudaMemsetAsync(
        call.outputs[0], 0,
        static_cast<std::size_t>(view.elements() * bytesOf(view.type)),
        context->stream().get()));
    auto *sorted = context->shared<Placed>();
    launch(*context, {blocksFor(tokens, kThreads), 1, kThreads}, sortTokens,
           static_cast<const std::int32_t *>(call.inputs[0]), tokens, held,
           sorted);
    // As many threads as a row has packs, in whole warps.
    const auto threads = static_cast<unsigned>(std::clamp<std::int64_t>(
        blocksFor(blocksFor(width, kPack), kWarp) * kWarp, kWarp, kThreads));
    launch(*context, {tokens, 1, threads}, sumTokens<R>,
           operandOf(spec, call, 1), resultOf(spec, call, 0),
           static_cast<const Placed *>(sorted), tokens, sizes.rows, held,
           width);
  }

  const SharedContext context;
  const KernelSpec spec;
  const Held held;
  const std::int64_t width, tokens;
  ColumnSizes sizes;
};

} // namespace

MadeKernel makeEmbedding(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "embedding_grad")
    return makeOf<EmbeddingGrad>(spec, context);
  return makeOf<Embedding>(spec, context);
}

} // namespace mtplan::runtime::cuda
