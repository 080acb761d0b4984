//===- embedding.cu - Lookups, and their gradients ------------------------===//

#include "runtime/cuda/device/embedding.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class Embedding final : public Kernel {
public:
  Embedding(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)),
        spec(theSpec), held{pieceOf(spec.inputs[1], 0).offset,
                            spec.inputs[1].shape[0]} {}

  void run(const Invocation &call) override {
    embedding<R>(streamOf(context),
                 static_cast<const std::int32_t *>(call.inputs[0]),
                 operandOf(spec, call, 1), resultOf(spec, call, 0),
                 spec.inputs[0].elements(), spec.inputs[1].shape[1], held);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const HeldRows held;
};

template <typename R> class EmbeddingGrad final : public Kernel {
public:
  EmbeddingGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)),
        spec(theSpec), held{pieceOf(spec.outputs[0], 0).offset,
                            spec.outputs[0].shape[0]} {
    const TensorView &ids = spec.inputs[0];
    sizes.samples = ids.shape.empty() ? 1 : ids.shape[0];
    sizes.rows = ids.elements() / sizes.samples;
    sizes.columns = spec.outputs[0].shape[1];
    context->reserve(embeddingGradScratch<R>(sizes, held));
  }

  void run(const Invocation &call) override {
    embeddingGrad<R>(streamOf(context),
                     static_cast<const std::int32_t *>(call.inputs[0]),
                     operandOf(spec, call, 1), resultOf(spec, call, 0), sizes,
                     held, context->shared<void>());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const HeldRows held;
  ColumnSizes sizes;
};

} // namespace

MadeKernel makeEmbedding(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "embedding_grad")
    return makeOf<EmbeddingGrad>(spec, context);
  return makeOf<Embedding>(spec, context);
}

} // namespace mtplan::runtime::cuda
