//===- position.cu - Rows by token and by position ------------------------===//

#include "runtime/cuda/device/position.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

Sequence sequenceOf(const TensorView &view) {
  return {view.shape[1], pieceOf(view, 1).offset == 0 ? 0 : -1};
}

PositionTable tableOf(const TensorView &tensor, const TensorView &table) {
  return {pieceOf(tensor, 1).offset - pieceOf(table, 0).offset, table.shape[0]};
}

/// Those that look up a row for each row of the result.
template <typename R> class PositionRows final : public Kernel {
public:
  PositionRows(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        width(spec.outputs[0].shape.back()),
        rows(spec.outputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    const cudaStream_t stream = streamOf(context);
    const Result to = resultOf(spec, call, 0);
    auto in = [&](std::size_t i) { return operandOf(spec, call, i); };
    if (spec.kernel == "put_first")
      putFirst<R>(stream, in(0), in(1), to, rows, width,
                  sequenceOf(spec.outputs[0]));
    else if (spec.kernel == "take_first")
      takeFirst<R>(stream, in(0), to, rows, width, sequenceOf(spec.inputs[0]));
    else if (spec.kernel == "take_first_grad")
      takeFirstGrad<R>(stream, in(0), to, rows, width,
                       sequenceOf(spec.outputs[0]));
    else
      positionEmbedding<R>(stream, in(0), in(1), to, rows, width,
                           tableOf(spec.inputs[0], spec.inputs[1]),
                           spec.inputs[0].shape[1]);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width, rows;
};

template <typename R> class PutFirstGrad final : public Kernel {
public:
  PutFirstGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {
    sizes.samples = spec.inputs[0].shape[0];
    sizes.columns = spec.inputs[0].shape[2];
    context->reserve(columnScratch<R>(sizes, 1));
  }

  void run(const Invocation &call) override {
    putFirstGrad<R>(streamOf(context), operandOf(spec, call, 0),
                    resultOf(spec, call, 0), resultOf(spec, call, 1), sizes,
                    sequenceOf(spec.outputs[0]), context->shared<void>());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  ColumnSizes sizes;
};

template <typename R> class PositionEmbeddingGrad final : public Kernel {
public:
  PositionEmbeddingGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {}

  void run(const Invocation &call) override {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    positionEmbeddingGrad<R>(
        streamOf(context), operandOf(spec, call, 0), resultOf(spec, call, 0),
        tableOf(spec.inputs[0], spec.outputs[0]), shape[0], shape[1], shape[2]);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
};

} // namespace

MadeKernel makePosition(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "put_first_grad")
    return makeOf<PutFirstGrad>(spec, context);
  if (spec.kernel == "position_embedding_grad")
    return makeOf<PositionEmbeddingGrad>(spec, context);
  return makeOf<PositionRows>(spec, context);
}

} // namespace mtplan::runtime::cuda
