//===- sums.cu - Column sums and other einsums ----------------------------===//

#include <algorithm>

#include "runtime/backend/einsum.h"
#include "runtime/backend/followed.h"
#include "runtime/cuda/device/letters.cuh"
#include "runtime/cuda/device/sums.cuh"
#include "runtime/cuda/families.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime::cuda {
namespace {

/// Implements the kernel `sum` over leading dimensions, optionally with a fused
/// `accumulate`. Only the last result is written.
template <typename R> class Sum final : public DeviceKernel {
public:
  Sum(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)),
        accumulates(spec.find(kThen)), firstTerm(firstTermOf(spec.settings)) {
    const TensorView &from = spec.inputs[0], &to = spec.outputs[0];
    sizes.columns = to.elements();
    sizes.samples = from.shape.size() > to.shape.size() ? from.shape[0] : 1;
    sizes.rows = from.elements() / sizes.samples / sizes.columns;
    context->reserve(columnScratch<R>(sizes, 1));
  }

  void run(const Invocation &call) override {
    sum<R>(stream(), in(call, 0), out(call, spec.outputs.size() - 1), sizes,
           scratch(),
           accumulates && !firstTerm.isOf(call.microBatch, call.copy));
  }

private:
  const bool accumulates;
  const FirstTerm firstTerm;
  ColumnSizes sizes;
};

Letters lettersOf(const KernelSpec &spec, const LetterLoops &loops) {
  if (loops.sizes.size() > kMostDims)
    refuse(spec, "has more than " + std::to_string(kMostDims) + " letters");
  Letters all;
  all.count = static_cast<int>(loops.sizes.size());
  std::ranges::copy(loops.sizes, all.sizes);
  std::ranges::copy(loops.left, all.left);
  std::ranges::copy(loops.right, all.right);
  return all;
}

template <typename R> class LetterSum final : public DeviceKernel {
public:
  LetterSum(const KernelSpec &theSpec, SharedContext theContext)
      : DeviceKernel(theSpec, std::move(theContext)) {
    const LetterSums loops(spec);
    kept = lettersOf(spec, loops.kept);
    summed = lettersOf(spec, loops.summed);
  }

  void run(const Invocation &call) override {
    letterSum<R>(stream(), in(call, 0), in(call, 1),
                 spec.inputs.size() == 3 ? in(call, 2) : kNone, out(call, 0),
                 kept, summed);
  }

  double flops() const override {
    return 2.0 * static_cast<double>(kept.steps() * summed.steps());
  }

private:
  Letters kept, summed;
};

} // namespace

MadeKernel makeLetterSum(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<LetterSum>(spec, context);
}

void addSums(Makers &to) {
  to.single["sum"] = makeTyped<Sum>;
  to.fused["sum"] = makeFused<Sum>;
}

} // namespace mtplan::runtime::cuda
