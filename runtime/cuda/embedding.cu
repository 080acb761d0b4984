//===- embedding.cu - Token and position embeddings, RoPE -----------------===//

#include "runtime/cuda/device/embedding.cuh"
#include "runtime/cuda/device/position.cuh"
#include "runtime/cuda/device/rope.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {
namespace {

HeldRows heldRowsOf(const TensorView &table) {
  return {pieceOf(table, 0).offset, table.shape[0]};
}

template <typename R> class Embedding final : public DeviceKernel {
public:
  Embedding(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        held(heldRowsOf(spec.inputs[1])) {}

  void run(const Invocation &call) override {
    embedding<R>(stream(), integers(call, 0), in(call, 1), out(call, 0),
                 spec.inputs[0].elements(), spec.inputs[1].shape[1], held);
  }

private:
  const HeldRows held;
};

template <typename R> class EmbeddingGrad final : public DeviceKernel {
public:
  EmbeddingGrad(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        held(heldRowsOf(spec.outputs[0])) {
    const TensorView &ids = spec.inputs[0];
    sizes.samples = ids.shape.empty() ? 1 : ids.shape[0];
    sizes.rows = ids.elements() / sizes.samples;
    sizes.columns = spec.outputs[0].shape[1];
    context->reserve(embeddingGradScratch<R>(sizes, held));
  }

  void run(const Invocation &call) override {
    embeddingGrad<R>(stream(), integers(call, 0), in(call, 1), out(call, 0),
                     sizes, held, scratch());
  }

private:
  const HeldRows held;
  ColumnSizes sizes;
};

Sequence sequenceOf(const TensorView &view) {
  return {view.shape[1], pieceOf(view, 1).offset == 0 ? 0 : -1};
}

PositionTable tableOf(const TensorView &tensor, const TensorView &table) {
  return {pieceOf(tensor, 1).offset - pieceOf(table, 0).offset, table.shape[0]};
}

/// Implements the kernels whose result rows are copies or sums of operand rows.
template <typename R> class PositionRows final : public DeviceKernel {
public:
  PositionRows(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        width(spec.outputs[0].shape.back()),
        rows(spec.outputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    const Result to = out(call, 0);
    if (spec.kernel == "put_first")
      putFirst<R>(stream(), in(call, 0), in(call, 1), to, rows, width,
                  sequenceOf(spec.outputs[0]));
    else if (spec.kernel == "take_first")
      takeFirst<R>(stream(), in(call, 0), to, rows, width,
                   sequenceOf(spec.inputs[0]));
    else if (spec.kernel == "take_first_grad")
      takeFirstGrad<R>(stream(), in(call, 0), to, rows, width,
                       sequenceOf(spec.outputs[0]));
    else
      positionEmbedding<R>(stream(), in(call, 0), in(call, 1), to, rows, width,
                           tableOf(spec.inputs[0], spec.inputs[1]),
                           spec.inputs[0].shape[1]);
  }

private:
  const std::int64_t width, rows;
};

template <typename R> class PutFirstGrad final : public DeviceKernel {
public:
  PutFirstGrad(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)) {
    sizes.samples = spec.inputs[0].shape[0];
    sizes.columns = spec.inputs[0].shape[2];
    context->reserve(columnScratch<R>(sizes, 1));
  }

  void run(const Invocation &call) override {
    putFirstGrad<R>(stream(), in(call, 0), out(call, 0), out(call, 1), sizes,
                    sequenceOf(spec.outputs[0]), scratch());
  }

private:
  ColumnSizes sizes;
};

template <typename R> class PositionEmbeddingGrad final : public DeviceKernel {
public:
  using DeviceKernel::DeviceKernel;

  void run(const Invocation &call) override {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    positionEmbeddingGrad<R>(stream(), in(call, 0), out(call, 0),
                             tableOf(spec.inputs[0], spec.outputs[0]), shape[0],
                             shape[1], shape[2]);
  }
};

template <typename R> class Rope final : public DeviceKernel {
public:
  Rope(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)) {
    const TensorView &view = spec.inputs[0];
    all.length = view.shape[1];
    all.offset = pieceOf(view, 1).offset;
    all.width = view.shape[2];
    all.headWidth = spec.integer("head_dim", 1);
    all.pairs = spec.integer("rotary_dim", 0) / 2;
    all.interleaved = spec.integer("interleaved", 0) != 0;
    all.turn = spec.integer("inverse", 0) != 0 ? -1.0 : 1.0;
    frequencies = uploaded(
        *context, ropeFrequencies(spec.number("theta", 1e4), all.pairs));
  }

  void run(const Invocation &call) override {
    rope<R>(stream(), in(call, 0), out(call, 0),
            reinterpret_cast<const double *>(frequencies.get()),
            spec.inputs[0].shape[0], all);
  }

private:
  Rotation all{};
  DeviceMemory frequencies;
};

} // namespace

void addEmbeddings(Makers &to) {
  to.single["embedding"] = makeTyped<Embedding>;
  to.single["embedding_grad"] = makeTyped<EmbeddingGrad>;
  for (const char *name :
       {"position_embedding", "put_first", "take_first", "take_first_grad"})
    to.single[name] = makeTyped<PositionRows>;
  to.single["position_embedding_grad"] = makeTyped<PositionEmbeddingGrad>;
  to.single["put_first_grad"] = makeTyped<PutFirstGrad>;
  to.single["rope"] = makeTyped<Rope>;
}

} // namespace mtplan::runtime::cuda
