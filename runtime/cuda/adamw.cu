//===- adamw.cu - The update of parameters --------------------------------===//

#include "runtime/cuda/dealt.h"
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

template <typename R> class AdamwOfMany final : public Kernel {
public:
  AdamwOfMany(const std::vector<Updated> &parameters, SharedContext theContext)
      : context(std::move(theContext)), dealt(*context, parameters) {}

  void run(const Invocation &call) override {
    adamw<R>(streamOf(context), dealt.get(), call.step);
  }

private:
  const SharedContext context;
  const Dealt<Updated> dealt;
};

bool isDouble(const KernelSpec &spec) {
  return spec.outputs[1].type == ElementType::f64;
}

} // namespace

MadeKernel makeAdamwOfMany(const std::vector<FixedRun> &runs,
                           const SharedContext &context) {
  std::vector<Updated> parameters;
  for (const FixedRun &run : runs) {
    if (isDouble(run.spec) != isDouble(runs[0].spec))
      return nullptr;
    const Invocation call = run.with(nullptr);
    parameters.push_back(
        {operandOf(run.spec, call, 0), resultOf(run.spec, call, 0),
         resultOf(run.spec, call, 1), resultOf(run.spec, call, 2),
         resultOf(run.spec, call, 3), run.spec.inputs[0].elements(),
         run.spec.integer("decay", 0) != 0});
  }
  if (isDouble(runs[0].spec))
    return std::make_unique<AdamwOfMany<double>>(parameters, context);
  return std::make_unique<AdamwOfMany<float>>(parameters, context);
}

MadeKernel makeAdamw(const KernelSpec &spec, const SharedContext &context) {
  if (isDouble(spec))
    return std::make_unique<Adamw<double>>(spec, context);
  return std::make_unique<Adamw<float>>(spec, context);
}

} // namespace mtplan::runtime::cuda
