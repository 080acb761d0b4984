//===- letters.cu - Einsums that are no products of matrices --------------===//

#include <algorithm>

#include "runtime/backend/letter_loops.h"
#include "runtime/cuda/device/letters.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

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

template <typename R> class LetterSum final : public Kernel {
public:
  LetterSum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {
    const LetterSums loops(spec);
    kept = lettersOf(spec, loops.kept);
    summed = lettersOf(spec, loops.summed);
  }

  void run(const Invocation &call) override {
    letterSum<R>(streamOf(context), operandOf(spec, call, 0),
                 operandOf(spec, call, 1),
                 spec.inputs.size() == 3 ? operandOf(spec, call, 2) : kNone,
                 resultOf(spec, call, 0), kept, summed);
  }

  double flops() const override {
    return 2.0 * static_cast<double>(kept.steps() * summed.steps());
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  Letters kept, summed;
};

} // namespace

MadeKernel makeLetterSum(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<LetterSum>(spec, context);
}

} // namespace mtplan::runtime::cuda
