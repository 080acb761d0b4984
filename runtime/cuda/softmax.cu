//===- softmax.cu - Softmax of rows ---------------------------------------===//
//
// A block for each row. The row is read again for each of its sums: after the
// first time it is in the nearest cache.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/block_sum.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr unsigned kThreads = 256;

template <typename R>
__global__ void softmax(Operand from, Result to, std::int64_t width) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  R x[kPack], largest = -R(INFINITY), sum = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < count; ++i)
      largest = Larger()(x[i], largest);
  });
  largest = overBlock(largest, Larger());
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < count; ++i)
      sum += exp(x[i] - largest);
  });
  const R share = R(1) / sumOverBlock(sum);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(from, start + first, count, x);
    for (int i = 0; i < kPack; ++i)
      x[i] = exp(x[i] - largest) * share;
    store(to, start + first, count, x);
  });
}

/// With p the result: dx = p * (above - sum(p * above)).
template <typename R>
__global__ void softmaxGrad(Operand shares, Operand above, Result to,
                            std::int64_t width) {
  const std::int64_t start = std::int64_t{blockIdx.x} * width;
  R p[kPack], d[kPack], projection = R(0);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(shares, start + first, count, p);
    load(above, start + first, count, d);
    for (int i = 0; i < count; ++i)
      projection += p[i] * d[i];
  });
  projection = sumOverBlock(projection);
  packsOfRow(width, [&](std::int64_t first, int count) {
    load(shares, start + first, count, p);
    load(above, start + first, count, d);
    for (int i = 0; i < kPack; ++i)
      p[i] *= d[i] - projection;
    store(to, start + first, count, p);
  });
}

template <typename R> class Softmax final : public Kernel {
public:
  Softmax(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        // A tensor without dimensions is one row of one element.
        width(spec.outputs[0].shape.empty() ? 1 : spec.outputs[0].shape.back()),
        rows(spec.outputs[0].elements() / width) {}

  void run(const Invocation &call) override {
    const Grid blocks{rows, 1, kThreads};
    if (spec.kernel == "softmax")
      launch(*context, blocks, softmax<R>, operandOf(spec, call, 0),
             resultOf(spec, call, 0), width);
    else
      launch(*context, blocks, softmaxGrad<R>, operandOf(spec, call, 0),
             operandOf(spec, call, 1), resultOf(spec, call, 0), width);
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
