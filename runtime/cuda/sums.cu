//===- sums.cu - Sums over samples and over all ---------------------------===//

#include "runtime/backend/followed.h"
#include "runtime/cuda/dealt.h"
#include "runtime/cuda/device/sums.cuh"
#include "runtime/cuda/families.h"
#include "runtime/plan/first_term.h"

namespace mtplan::runtime::cuda {

namespace {

/// `sum`: down to the trailing dimensions; to the last result, which it adds to
/// if it is an accumulator.
template <typename R> class Sum final : public Kernel {
public:
  Sum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        accumulates(spec.find(kThen)), firstTerm(firstTermOf(spec.settings)) {
    const TensorView &from = spec.inputs[0], &to = spec.outputs[0];
    sizes.columns = to.elements();
    sizes.samples = from.shape.size() > to.shape.size() ? from.shape[0] : 1;
    sizes.rows = from.elements() / sizes.samples / sizes.columns;
    context->reserve(columnScratch<R>(sizes, 1));
  }

  void run(const Invocation &call) override {
    sum<R>(streamOf(context), operandOf(spec, call, 0),
           resultOf(spec, call, spec.outputs.size() - 1), sizes,
           context->shared<void>(),
           accumulates && !firstTerm.isOf(call.microBatch, call.copy));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const bool accumulates;
  const FirstTerm firstTerm;
  ColumnSizes sizes;
};

bool doesCount(const KernelSpec &spec) {
  return spec.integer("counts", 1) != 0;
}

template <typename R> class SquareSum final : public Kernel {
public:
  SquareSum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), counts(doesCount(spec)),
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

template <typename R> class SquareSumOfMany final : public Kernel {
public:
  SquareSumOfMany(const std::vector<Squared> &tensors, void *theSum,
                  SharedContext theContext)
      : context(std::move(theContext)), dealt(*context, tensors),
        sum(static_cast<DeviceLongSum *>(theSum)) {
    context->reserve(squareSumScratch(dealt.get()));
  }

  void run(const Invocation & /*call*/) override {
    squareSum<R>(streamOf(context), dealt.get(), sum, context->shared<void>());
  }

private:
  const SharedContext context;
  const Dealt<Squared> dealt;
  DeviceLongSum *const sum;
};

// The result is f64 always.
bool isDouble(const KernelSpec &spec) {
  return spec.inputs[0].type == ElementType::f64;
}

} // namespace

MadeKernel makeSum(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Sum>(spec, context);
}

MadeKernel makeFollowedSum(const KernelSpec &spec,
                           const SharedContext &context) {
  return isOfOnePrecision(spec) ? makeSum(spec, context) : nullptr;
}

MadeKernel makeSquareSum(const KernelSpec &spec, const SharedContext &context) {
  if (isDouble(spec))
    return std::make_unique<SquareSum<double>>(spec, context);
  return std::make_unique<SquareSum<float>>(spec, context);
}

MadeKernel makeSquareSumOfMany(const std::vector<FixedRun> &runs,
                               const SharedContext &context) {
  void *const sum = runs[0].outputs[0];
  std::vector<Squared> tensors;
  for (const FixedRun &run : runs) {
    if (run.outputs[0] != sum || isDouble(run.spec) != isDouble(runs[0].spec))
      return nullptr;
    if (doesCount(run.spec))
      tensors.push_back({operandOf(run.spec, run.with(nullptr), 0),
                         run.spec.inputs[0].elements()});
  }
  if (isDouble(runs[0].spec))
    return std::make_unique<SquareSumOfMany<double>>(tensors, sum, context);
  return std::make_unique<SquareSumOfMany<float>>(tensors, sum, context);
}

} // namespace mtplan::runtime::cuda
