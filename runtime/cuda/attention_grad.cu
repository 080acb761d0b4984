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
    withWidths(all.width, [&](auto widths) {
      attentionGradOf<R, decltype(widths)::value>(
          stream(), {in(call, 0), in(call, 1), in(call, 2), in(call, 5)},
          in(call, 3), in(call, 4), out(call, 0), out(call, 1), out(call, 2),
          biased ? out(call, 3) : kNowhere,
          biased ? spec.outputs[3].elements() : 0, headsOf(call), masksOf(call),
          scratch());
    });
  }

private:
  const bool biased;
};

MadeKernel makeAttentionGrad(const KernelSpec &spec,
                             const SharedContext &context) {
  if (MadeKernel fused = makeFusedAttention(spec, context))
    return fused;
  return makeOf<AttentionGrad>(spec, context);
}

} // namespace

void addAttentionGrads(Makers &to) {
  to.single["attention_grad"] = makeAttentionGrad;
}

} // namespace mtplan::runtime::cuda
