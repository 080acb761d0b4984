//===- attention_grad.cu - Gradients of attention -------------------------===//

#include "runtime/cuda/attention_kernel.h"
#include "runtime/cuda/cudnn/fused_attention.h"
#include "runtime/cuda/device/attention_grad.cuh"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class AttentionGrad final : public AttentionKernel {
public:
  AttentionGrad(const KernelSpec &theSpec, SharedContext theContext)
      : AttentionKernel(theSpec, std::move(theContext), 6),
        biased(spec.outputs.size() > 3) {
    context->reserve(attentionGradScratch<R>(all, biased));
  }

  void run(const Invocation &call) override {
    auto in = [&](std::size_t i) { return operandOf(spec, call, i); };
    auto out = [&](std::size_t i) { return resultOf(spec, call, i); };
    withWidths(all.width, [&](auto widths) {
      attentionGradOf<R, decltype(widths)::value>(
          streamOf(context), {in(0), in(1), in(2), in(5)}, in(3), in(4), out(0),
          out(1), out(2), biased ? out(3) : kNowhere,
          biased ? spec.outputs[3].elements() : 0, headsOf(call), masksOf(call),
          context->shared<void>());
    });
  }

private:
  const bool biased;
};

} // namespace

MadeKernel makeAttentionGrad(const KernelSpec &spec,
                             const SharedContext &context) {
  if (MadeKernel fused = makeFusedAttention(spec, context))
    return fused;
  return makeOf<AttentionGrad>(spec, context);
}

} // namespace mtplan::runtime::cuda
