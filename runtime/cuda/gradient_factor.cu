//===- gradient_factor.cu - Clip and unscale, decided by the device -------===//

#include "runtime/cuda/device/gradient_factor.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

class GradientFactor final : public Kernel {
public:
  GradientFactor(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)), ranks(spec.inputs[0].elements() / 2) {}

  void run(const Invocation &call) override {
    gradientFactor(streamOf(context),
                   static_cast<const DeviceLongSum *>(call.inputs[0]), ranks,
                   call.step, static_cast<double *>(call.outputs[0]));
  }

private:
  const SharedContext context;
  const std::int64_t ranks;
};

} // namespace

MadeKernel makeGradientFactor(const KernelSpec &spec,
                              const SharedContext &context) {
  return std::make_unique<GradientFactor>(spec, context);
}

} // namespace mtplan::runtime::cuda
