//===- sums.cu - Sums over samples and over all ---------------------------===//

#include "runtime/cuda/column_sums.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/long_sum.cuh"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> struct SumTerm {
  Operand from;
  std::int64_t width;
  __device__ void operator()(std::int64_t row, std::int64_t column,
                             Several<R, 1> &sums) const {
    sums[0] += loadOne<R>(from, row * width + column);
  }
};

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
    sumColumns<R, 1>(*context, sizes, context->shared<R>(),
                     {{resultOf(spec, call, 0)}},
                     SumTerm<R>{operandOf(spec, call, 0), sizes.columns});
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  ColumnSizes sizes;
};

constexpr unsigned kThreads = 256;
constexpr std::int64_t kPacks = 16; ///< of a thread
constexpr std::int64_t kOfBlock = kThreads * kPacks * kPack;

/// All threads' sums, by pairs; thread 0 gets it.
__device__ DeviceLongSum longSumOverBlock(const DeviceLongSum &mine) {
  __shared__ DeviceLongSum threads[kThreads];
  threads[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned apart = kThreads / 2; apart > 0; apart /= 2) {
    if (threadIdx.x < apart)
      threads[threadIdx.x].add(threads[threadIdx.x + apart]);
    __syncthreads();
  }
  return threads[0];
}

template <typename R>
__global__ void sumSquares(Operand from, std::int64_t elements,
                           DeviceLongSum *parts) {
  DeviceLongSum sum{0.0, 0.0};
  R x[kPack];
  for (std::int64_t pack = 0; pack < kPacks; ++pack) {
    const std::int64_t first =
        std::int64_t{blockIdx.x} * kOfBlock +
        (pack * kThreads + std::int64_t{threadIdx.x}) * kPack;
    if (first >= elements)
      break;
    const int count = packAt(first, elements);
    load(from, first, count, x);
    for (int i = 0; i < count; ++i)
      sum.addSquare(static_cast<double>(x[i]));
  }
  sum = longSumOverBlock(sum);
  if (threadIdx.x == 0)
    parts[blockIdx.x] = sum;
}

/// One block.
__global__ void addParts(const DeviceLongSum *parts, std::int64_t count,
                         DeviceLongSum *to) {
  DeviceLongSum sum{0.0, 0.0};
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads)
    sum.add(parts[i]);
  sum = longSumOverBlock(sum);
  if (threadIdx.x == 0)
    to->add(sum);
}

template <typename R> class SquareSum final : public Kernel {
public:
  SquareSum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        counts(spec.integer("counts", 1) != 0),
        elements(spec.inputs[0].elements()),
        blocks(blocksFor(elements, kOfBlock)) {
    context->reserve(static_cast<std::size_t>(blocks) * sizeof(DeviceLongSum));
  }

  void run(const Invocation &call) override {
    if (!counts)
      return;
    auto *parts = context->shared<DeviceLongSum>();
    launch(*context, {blocks, 1, kThreads}, sumSquares<R>,
           operandOf(spec, call, 0), elements, parts);
    launch(*context, {1, 1, kThreads}, addParts,
           static_cast<const DeviceLongSum *>(parts), blocks,
           static_cast<DeviceLongSum *>(call.outputs[0]));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const bool counts;
  const std::int64_t elements, blocks;
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
