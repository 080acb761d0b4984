//===- dropout.cu - Dropout over a piece of a tensor ----------------------===//

#include "runtime/backend/followed.h"
#include "runtime/cuda/device/dropout.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

/// Alone, or with the `add` that follows it.
template <typename R> class Dropout final : public Kernel {
public:
  Dropout(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        rate(spec.number("rate", 0.0)), name(spec.text("mask", "")),
        adds(spec.find(kThen)) {
    try {
      pieceOfWhole(spec.outputs[0]);
    } catch (const std::invalid_argument &fault) {
      refuse(spec, fault.what());
    }
  }

  void run(const Invocation &call) override {
    Addend addend;
    if (adds)
      addend = {operandOf(spec, call, 1), spec.outputs[0].type};
    dropout<R>(streamOf(context), operandOf(spec, call, 0),
               resultOf(spec, call, adds ? 1 : 0), spec.outputs[0],
               call.microBatch, Masks(call.step, name, call.copy, rate),
               addend);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const double rate;
  const std::string name;
  const bool adds;
};

} // namespace

MadeKernel makeDropout(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Dropout>(spec, context);
}

MadeKernel makeFollowedDropout(const KernelSpec &spec,
                               const SharedContext &context) {
  return isOfOnePrecision(spec) ? makeOf<Dropout>(spec, context) : nullptr;
}

} // namespace mtplan::runtime::cuda
