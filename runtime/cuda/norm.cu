//===- norm.cu - Layer and RMS norms --------------------------------------===//

#include "runtime/backend/followed.h"
#include "runtime/cuda/device/norm.cuh"
#include "runtime/cuda/device/norm_grad.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

constexpr double kEpsilon = 1e-5; // as in ir/norm_ops.td

template <typename R> class Norm final : public Kernel {
public:
  Norm(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        width(spec.inputs[1].shape[0]),
        rows(spec.inputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    norm<R>(
        streamOf(context), operandOf(spec, call, 0), operandOf(spec, call, 1),
        spec.inputs.size() > 2 ? operandOf(spec, call, 2) : kNone,
        resultOf(spec, call, 0), rows, width, spec.number("epsilon", kEpsilon));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width, rows;
};

/// Alone, or with the `add` that follows it.
template <typename R> class NormGrad final : public Kernel {
public:
  NormGrad(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), adds(spec.find(kThen)),
        centred(spec.kernel == "layer_norm_grad") {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    sizes.columns = spec.inputs[1].shape[0];
    sizes.samples = shape.size() < 2 ? 1 : shape[0];
    sizes.rows = spec.inputs[0].elements() / sizes.samples / sizes.columns;
    if (sizes.columns > kWidestNormGrad)
      refuse(spec, "has rows of " + std::to_string(sizes.columns) +
                       " columns, of which a GPU takes at most " +
                       std::to_string(kWidestNormGrad));
    context->reserve(normGradScratch<R>(sizes, centred));
  }

  void run(const Invocation &call) override {
    normGrad<R>(streamOf(context), operandOf(spec, call, 0),
                operandOf(spec, call, 1), operandOf(spec, call, 2),
                resultOf(spec, call, adds ? spec.outputs.size() - 1 : 0),
                resultOf(spec, call, 1),
                centred ? resultOf(spec, call, 2) : kNowhere, sizes,
                spec.number("epsilon", kEpsilon), context->shared<void>(),
                adds ? Addend{operandOf(spec, call, 3), spec.outputs[0].type}
                     : Addend());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const bool adds, centred;
  ColumnSizes sizes;
};

} // namespace

MadeKernel makeNorm(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel.ends_with("_grad"))
    return makeOf<NormGrad>(spec, context);
  return makeOf<Norm>(spec, context);
}

MadeKernel makeFollowedNormGrad(const KernelSpec &spec,
                                const SharedContext &context) {
  return isOfOnePrecision(spec) ? makeOf<NormGrad>(spec, context) : nullptr;
}

} // namespace mtplan::runtime::cuda
