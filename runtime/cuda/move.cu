//===- move.cu - What is copied, cut or cleared ---------------------------===//

#include <algorithm>

#include "runtime/backend/strided_source.h"
#include "runtime/cuda/device/move.cuh"
#include "runtime/cuda/families.h"

namespace mtplan::runtime::cuda {

namespace {

std::size_t bytesOf(const TensorView &view) {
  return static_cast<std::size_t>(view.elements() *
                                  runtime::bytesOf(view.type));
}

/// Of the result, whatever is given.
class Zeros final : public Kernel {
public:
  Zeros(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)), bytes(bytesOf(spec.outputs[0])) {}

  void run(const Invocation &call) override {
    MTPLAN_CUDA(cudaMemsetAsync(call.outputs[0], 0, bytes, streamOf(context)));
  }

private:
  const SharedContext context;
  const std::size_t bytes;
};

template <typename R> class Take final : public Kernel {
public:
  Take(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {
    const StridedSource all(spec);
    if (all.sizes.size() > kMostDims)
      refuse(spec, "has more than " + std::to_string(kMostDims) +
                       " dimensions that are cut");
    source.dims = static_cast<int>(all.sizes.size());
    std::copy(all.sizes.begin(), all.sizes.end(), source.sizes);
    std::copy(all.steps.begin(), all.steps.end(), source.steps);
    source.start = all.start;
    source.length = all.length;
    runs = all.runs();
  }

  void run(const Invocation &call) override {
    take<R>(streamOf(context), operandOf(spec, call, 0),
            resultOf(spec, call, 0), runs, source);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  Strides source;
  std::int64_t runs;
};

} // namespace

MadeKernel makeMove(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "slice" || spec.kernel == "piece" ||
      spec.kernel == "transpose") {
    // Through float no i32 would come as it went.
    if (spec.inputs[0].type == ElementType::i32)
      return std::make_unique<Take<double>>(spec, context);
    return makeOf<Take>(spec, context);
  }
  if (spec.kernel == "mask" && spec.integer("place", 0) == 0)
    return makePointwise(spec, context);
  return std::make_unique<Zeros>(spec, context);
}

} // namespace mtplan::runtime::cuda
