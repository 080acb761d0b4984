//===- experts.cu - Tokens to the experts' places and back ----------------===//

#include "runtime/cuda/device/experts.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

/// What all four know: where slots and places are among the operands.
template <typename R> class Experts final : public Kernel {
public:
  Experts(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), slotsAt(slotsPlace()),
        places(
            placesOf(spec.inputs[slotsAt], spec.kernel == "moe_dispatch"
                                               ? spec.outputs[0]
                                               : spec.inputs[placesPlace()])) {
    context->reserve(placesScratch(places));
  }

  void run(const Invocation &call) override {
    const cudaStream_t stream = streamOf(context);
    const auto *slots = static_cast<const std::int32_t *>(call.inputs[slotsAt]);
    void *scratch = context->shared<void>();
    auto in = [&](std::size_t i) { return operandOf(spec, call, i); };
    auto out = [&](std::size_t i) { return resultOf(spec, call, i); };
    if (spec.kernel == "moe_dispatch")
      moeDispatch<R>(stream, in(0), slots, out(0), places, scratch);
    else if (spec.kernel == "moe_dispatch_grad")
      moeDispatchGrad<R>(stream, slots, in(1), out(0), places);
    else if (spec.kernel == "moe_combine")
      moeCombine<R>(stream, in(0), in(1), slots, out(0), places);
    else
      moeCombineGrad<R>(stream, in(0), in(1), slots, in(3), out(0), out(1),
                        places, scratch);
  }

private:
  static Places placesOf(const TensorView &slots, const TensorView &places) {
    return {slots.shape[0], slots.shape[1], slots.shape[2], places.shape[2],
            places.shape[3]};
  }
  std::size_t slotsPlace() const {
    return spec.kernel == "moe_dispatch"        ? 1
           : spec.kernel == "moe_dispatch_grad" ? 0
                                                : 2;
  }
  std::size_t placesPlace() const {
    return spec.kernel == "moe_dispatch_grad" ? 1 : 0;
  }

  const SharedContext context;
  const KernelSpec spec;
  const std::size_t slotsAt;
  const Places places;
};

} // namespace

MadeKernel makeExperts(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Experts>(spec, context);
}

} // namespace mtplan::runtime::cuda
