//===- adamw.cu - The update of parameters --------------------------------===//

#include "runtime/cuda/device/adamw.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class Adamw final : public Kernel {
public:
  Adamw(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        decays(spec.integer("decay", 0) != 0) {}

  void run(const Invocation &call) override {
    adamw<R>(streamOf(context), operandOf(spec, call, 0),
             resultOf(spec, call, 0), resultOf(spec, call, 1),
             resultOf(spec, call, 2), resultOf(spec, call, 3),
             spec.inputs[0].elements(), call.step, decays);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const bool decays;
};

} // namespace

MadeKernel makeAdamw(const KernelSpec &spec, const SharedContext &context) {
  if (spec.outputs[1].type == ElementType::f64)
    return std::make_unique<Adamw<double>>(spec, context);
  return std::make_unique<Adamw<float>>(spec, context);
}

} // namespace mtplan::runtime::cuda
