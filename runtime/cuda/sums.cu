//===- sums.cu - Sums over samples and over all ---------------------------===//

#include "runtime/cuda/device/sums.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

/// `sum`: down to the trailing dimensions.
template <typename R> class Sum final : public Kernel {
public:
  Sum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {
    const TensorView &from = spec.inputs[0], &to = spec.outputs[0];
    sizes.columns = to.elements();
    sizes.samples = from.shape.size() > to.shape.size() ? from.shape[0] : 1;
    sizes.rows = from.elements() / sizes.samples / sizes.columns;
    context->reserve(columnScratch<R>(sizes, 1));
  }

  void run(const Invocation &call) override {
    sum<R>(streamOf(context), operandOf(spec, call, 0), resultOf(spec, call, 0),
           sizes, context->shared<void>());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  ColumnSizes sizes;
};

template <typename R> class SquareSum final : public Kernel {
public:
  SquareSum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        counts(spec.integer("counts", 1) != 0),
        elements(spec.inputs[0].elements()) {
    context->reserve(squareSumScratch(elements));
  }

  void run(const Invocation &call) override {
    if (counts)
      squareSum<R>(streamOf(context), operandOf(spec, call, 0),
                   static_cast<DeviceLongSum *>(call.outputs[0]), elements,
                   context->shared<void>());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const bool counts;
  const std::int64_t elements;
};

} // namespace

MadeKernel makeSum(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Sum>(spec, context);
}

MadeKernel makeSquareSum(const KernelSpec &spec, const SharedContext &context) {
  // The result is f64 always.
  if (spec.inputs[0].type == ElementType::f64)
    return std::make_unique<SquareSum<double>>(spec, context);
  return std::make_unique<SquareSum<float>>(spec, context);
}

} // namespace mtplan::runtime::cuda
