//===- dropout.cu - Dropout over a piece of a tensor ----------------------===//

#include "runtime/cuda/device/dropout.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class Dropout final : public Kernel {
public:
  Dropout(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        rate(spec.number("rate", 0.0)), name(spec.text("mask", "")) {
    try {
      pieceOfWhole(spec.outputs[0]);
    } catch (const std::invalid_argument &fault) {
      refuse(spec, fault.what());
    }
  }

  void run(const Invocation &call) override {
    dropout<R>(streamOf(context), operandOf(spec, call, 0),
               resultOf(spec, call, 0), spec.outputs[0], call.microBatch,
               Masks(call.step, name, call.copy, rate));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const double rate;
  const std::string name;
};

} // namespace

MadeKernel makeDropout(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Dropout>(spec, context);
}

} // namespace mtplan::runtime::cuda
