//===- softmax.cu - Softmax of rows ---------------------------------------===//

#include "runtime/cuda/device/softmax.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> class Softmax final : public Kernel {
public:
  Softmax(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        // A tensor without dimensions is one row of one element.
        width(spec.outputs[0].shape.empty() ? 1 : spec.outputs[0].shape.back()),
        rows(spec.outputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    if (spec.kernel == "softmax")
      softmax<R>(streamOf(context), operandOf(spec, call, 0),
                 resultOf(spec, call, 0), rows, width);
    else
      softmaxGrad<R>(streamOf(context), operandOf(spec, call, 0),
                     operandOf(spec, call, 1), resultOf(spec, call, 0), rows,
                     width);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t width, rows;
};

} // namespace

MadeKernel makeSoftmax(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Softmax>(spec, context);
}

} // namespace mtplan::runtime::cuda
