//===- move.cu - What is copied, cut or cleared ---------------------------===//

#include <algorithm>

#include "runtime/backend/strided_source.h"
#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

/// Of the result, whatever is given.
class Zeros final : public Kernel {
public:
  Zeros(const KernelSpec &spec, SharedContext theContext)
      : context(std::move(theContext)),
        bytes(static_cast<std::size_t>(spec.outputs[0].elements() *
                                       bytesOf(spec.outputs[0].type))) {}

  void run(const Invocation &call) override {
    MTPLAN_CUDA(
        cudaMemsetAsync(call.outputs[0], 0, bytes, context->stream().get()));
  }

private:
  const SharedContext context;
  const std::size_t bytes;
};

constexpr int kMostDims = 8;

/// As runtime/backend/strided_source.h has it.
struct Strides {
  int dims = 0;
  std::int64_t sizes[kMostDims], steps[kMostDims];
  std::int64_t start, length;

  __device__ std::int64_t at(std::int64_t run) const {
    std::int64_t place = start;
    for (int d = dims - 1; d >= 0; --d) {
      place += run % sizes[d] * steps[d];
      run /= sizes[d];
    }
    return place;
  }
};

/// A thread for each pack of each run.
template <typename R>
__global__ void takeRuns(Operand from, Result to, std::int64_t runs,
                         Strides source) {
  const std::int64_t packs = (source.length + kPack - 1) / kPack;
  const std::int64_t pack = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (pack >= runs * packs)
    return;
  const std::int64_t run = pack / packs, h = pack % packs * kPack;
  const int count = packAt(h, source.length);
  R x[kPack];
  load(from, source.at(run) + h, count, x);
  store(to, run * source.length + h, count, x);
}

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
    constexpr unsigned kThreads = 256;
    launch(*context,
           {blocksFor(runs * blocksFor(source.length, kPack), kThreads), 1,
            kThreads},
           takeRuns<R>, operandOf(spec, call, 0), resultOf(spec, call, 0), runs,
           source);
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
