//===- position.cu - Rows by token and by position ------------------------===//

#include "runtime/cuda/column_sums.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr Operand kNone{nullptr, ElementType::f32};

/// Positions of each sample, and the one that is the sequence's first, or -1 if
/// this piece has it not.
struct Sequence {
  std::int64_t length, first;

  explicit Sequence(const TensorView &view)
      : length(view.shape[1]), first(pieceOf(view, 1).offset == 0 ? 0 : -1) {}
  __device__ bool isFirst(std::int64_t row) const {
    return first >= 0 && row % length == 0;
  }
};

struct PutFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t row) const {
    return sequence.isFirst(row) ? SourceRows{-1, 0} : SourceRows{row, -1};
  }
};

struct OtherThanFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t row) const {
    return {sequence.isFirst(row) ? -1 : row, -1};
  }
};

struct TakeFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t sample) const {
    return {sequence.first >= 0 ? sample * sequence.length : -1, -1};
  }
};

struct GiveFirstSource {
  Sequence sequence;
  __device__ SourceRows operator()(std::int64_t row) const {
    return {sequence.isFirst(row) ? row / sequence.length : -1, -1};
  }
};

/// Row of a table of positions. A table that is split along with the positions
/// begins where they do; a whole one at 0.
struct Table {
  std::int64_t shift, held;

  Table(const TensorView &tensor, const TensorView &table)
      : shift(pieceOf(tensor, 1).offset - pieceOf(table, 0).offset),
        held(table.shape[0]) {}
};

struct PositionSource {
  Table table;
  std::int64_t length;
  __device__ SourceRows operator()(std::int64_t row) const {
    const std::int64_t at = row % length + table.shift;
    return {row, at >= 0 && at < table.held ? at : -1};
  }
};

template <typename R, typename Source> class Gather final : public Kernel {
public:
  Gather(const KernelSpec &theSpec, SharedContext theContext,
         const Source &theSource)
      : context(std::move(theContext)), spec(theSpec), source(theSource),
        width(spec.outputs[0].shape.back()),
        rows(spec.outputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    gather<R>(*context, operandOf(spec, call, 0),
              spec.inputs.size() > 1 ? operandOf(spec, call, 1) : kNone,
              resultOf(spec, call, 0), rows, width, source);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Source source;
  const std::int64_t width, rows;
};

template <typename Source>
MadeKernel makeGather(const KernelSpec &spec, const SharedContext &context,
                      const Source &source) {
  if (usesDouble(spec))
    return std::make_unique<Gather<double, Source>>(spec, context, source);
  return std::make_unique<Gather<float, Source>>(spec, context, source);
}

template <typename R> struct FirstTerm {
  Operand from;
  Sequence sequence;
  std::int64_t width;
  __device__ void operator()(std::int64_t sample, std::int64_t column,
                             Several<R, 1> &sums) const {
    if (sequence.first >= 0)
      sums[0] += loadOne<R>(from, sample * sequence.length * width + column);
  }
};

template <typename R> class PutFirstGrad final : public Kernel {
public:
  PutFirstGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        sequence(spec.outputs[0]), sizes{spec.inputs[0].shape[0], 1,
                                         spec.inputs[0].shape[2]} {
    context->reserve(columnScratch<R>(sizes, 1));
  }

  void run(const Invocation &call) override {
    const Operand from = operandOf(spec, call, 0);
    gather<R>(*context, from, kNone, resultOf(spec, call, 0),
              sizes.samples * sequence.length, sizes.columns,
              OtherThanFirstSource{sequence});
    sumColumns<R, 1>(*context, sizes, context->shared<R>(),
                     {{resultOf(spec, call, 1)}},
                     FirstTerm<R>{from, sequence, sizes.columns});
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Sequence sequence;
  const ColumnSizes sizes;
};

/// A thread for each pack of each row of the table; samples in their order.
template <typename R>
__global__ void sumPositions(Operand from, Result to, Table table,
                             std::int64_t samples, std::int64_t length,
                             std::int64_t width) {
  const std::int64_t packs = (width + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= table.held * packs)
    return;
  const std::int64_t row = pack / packs, h = pack % packs * kPack;
  const int count = packAt(h, width);
  const std::int64_t position = row - table.shift;
  R sum[kPack] = {}, x[kPack];
  if (position >= 0 && position < length)
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      load(from, (sample * length + position) * width + h, count, x);
      for (int i = 0; i < kPack; ++i)
        sum[i] += x[i];
    }
  store(to, row * width + h, count, sum);
}

template <typename R> class PositionEmbeddingGrad final : public Kernel {
public:
  PositionEmbeddingGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        table(spec.inputs[0], spec.outputs[0]) {}

  void run(const Invocation &call) override {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    constexpr unsigned kThreads = 256;
    launch(*context,
           {blocksFor(table.held * blocksFor(shape[2], kPack), kThreads), 1,
            kThreads},
           sumPositions<R>, operandOf(spec, call, 0), resultOf(spec, call, 0),
           table, shape[0], shape[1], shape[2]);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Table table;
};

} // namespace

MadeKernel makePosition(const KernelSpec &spec, const SharedContext &context) {
  const std::string &name = spec.kernel;
  if (name == "put_first")
    return makeGather(spec, context, PutFirstSource{Sequence(spec.outputs[0])});
  if (name == "put_first_grad")
    return makeOf<PutFirstGrad>(spec, context);
  if (name == "take_first")
    return makeGather(spec, context, TakeFirstSource{Sequence(spec.inputs[0])});
  if (name == "take_first_grad")
    return makeGather(spec, context,
                      GiveFirstSource{Sequence(spec.outputs[0])});
  if (name == "position_embedding")
    return makeGather(spec, context,
                      PositionSource{Table(spec.inputs[0], spec.inputs[1]),
                                     spec.inputs[0].shape[1]});
  return makeOf<PositionEmbeddingGrad>(spec, context);
}

} // namespace mtplan::runtime::cuda
