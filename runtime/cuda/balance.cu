//===- balance.cu - What an even use of experts costs ---------------------===//

#include "runtime/cuda/device/balance.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class BalanceLoss final : public Kernel {
public:
  BalanceLoss(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)),
        spec(theSpec), all{spec.inputs[0].shape[1], spec.inputs[0].shape[2],
                           spec.integer("top_k", 1),
                           spec.number("coefficient", 0.0)},
        samples(spec.inputs[0].shape[0]) {
    context->reserve(balanceScratch<R>(samples, all.experts));
  }

  void run(const Invocation &call) override {
    (spec.kernel == "balance_loss"
         ? balanceLoss<R>
         : balanceLossGrad<R>)(streamOf(context), operandOf(spec, call, 0),
                               operandOf(spec, call, 1),
                               resultOf(spec, call, 0), samples, all,
                               context->shared<void>());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Balance<R> all;
  const std::int64_t samples;
};

} // namespace

MadeKernel makeBalance(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<BalanceLoss>(spec, context);
}

} // namespace mtplan::runtime::cuda
