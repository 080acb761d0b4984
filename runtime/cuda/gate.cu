//===- gate.cu - How much of each expert a token gets, and where ----------===//

#include "runtime/cuda/device/gate.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class Gate final : public Kernel {
public:
  Gate(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        experts(spec.inputs[0].shape[2]),
        tokens(spec.inputs[0].elements() / experts),
        topK(spec.integer("top_k", 1)),
        normalise(spec.integer("normalise", 0) != 0) {}

  void run(const Invocation &call) override {
    const cudaStream_t stream = streamOf(context);
    if (spec.kernel == "moe_gate")
      moeGate<R>(stream, operandOf(spec, call, 0), resultOf(spec, call, 0),
                 tokens, experts, topK, normalise);
    else
      moeGateGrad<R>(stream, operandOf(spec, call, 0), operandOf(spec, call, 1),
                     resultOf(spec, call, 0), tokens, experts, topK, normalise);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t experts, tokens, topK;
  const bool normalise;
};

template <typename R> class Slots final : public Kernel {
public:
  Slots(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        topK(spec.integer("top_k", 1)) {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    context->reserve(moeSlotsScratch(shape[0] * shape[1], shape[2]));
  }

  void run(const Invocation &call) override {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    moeSlots<R>(streamOf(context), operandOf(spec, call, 0),
                static_cast<std::int32_t *>(call.outputs[0]), shape[0],
                shape[1], shape[2], topK, context->shared<void>());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t topK;
};

} // namespace

MadeKernel makeGate(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Gate>(spec, context);
}

MadeKernel makeSlots(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Slots>(spec, context);
}

} // namespace mtplan::runtime::cuda
