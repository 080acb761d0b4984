//===- loss.cu - Cross entropy over rows of logits ------------------------===//
//
// A block for each token.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <limits>

#include "runtime/cuda/block_sum.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr unsigned kThreads = 256;

/// The classes of a piece of the logits: where it begins in the vocabulary, how
/// long a row is and how much of that is not padding.
struct Classes {
  std::int64_t offset, width, real;

  explicit Classes(const KernelSpec &spec)
      : offset(pieceOf(spec.inputs[0], spec.inputs[0].shape.size() - 1).offset),
        width(spec.inputs[0].shape.back()),
        real(std::clamp<std::int64_t>(
            spec.integer("classes", std::numeric_limits<std::int64_t>::max()) -
                offset,
            0, width)) {}

  /// The element of a row that is a target's, or -1.
  __device__ std::int64_t find(std::int32_t target) const {
    const std::int64_t local = std::int64_t{target} - offset;
    return target >= 0 && local >= 0 && local < width ? local : -1;
  }
};

template <typename R>
__global__ void largestOf(Operand logits, Result to, Classes classes) {
  const std::int64_t start = std::int64_t{blockIdx.x} * classes.width;
  // A piece of padding only has the neutral element of the reduction.
  R largest = -R(INFINITY), x[kPack];
  packsOfRow(classes.real, [&](std::int64_t v, int count) {
    load(logits, start + v, count, x);
    for (int i = 0; i < count; ++i)
      largest = Larger()(x[i], largest);
  });
  largest = overBlock(largest, Larger());
  if (threadIdx.x == 0)
    storeOne(to, blockIdx.x, largest);
}

template <typename R>
__global__ void sumExp(Operand logits, Operand largest, Result to,
                       Classes classes) {
  const std::int64_t start = std::int64_t{blockIdx.x} * classes.width;
  const R top = loadOne<R>(largest, blockIdx.x);
  R sum = R(0), x[kPack];
  packsOfRow(classes.real, [&](std::int64_t v, int count) {
    load(logits, start + v, count, x);
    for (int i = 0; i < count; ++i)
      sum += exp(x[i] - top);
  });
  sum = sumOverBlock(sum);
  if (threadIdx.x == 0)
    storeOne(to, blockIdx.x, sum);
}

/// A thread for each token.
template <typename R>
__global__ void pick(Operand logits, const std::int32_t *targets, Result to,
                     std::int64_t tokens, Classes classes) {
  const std::int64_t token =
      std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (token >= tokens)
    return;
  const std::int64_t v = classes.find(targets[token]);
  storeOne(to, token,
           v < 0 ? R(0) : loadOne<R>(logits, token * classes.width + v));
}

template <typename R>
__global__ void crossEntropyGrad(Operand logits, Operand largest, Operand sums,
                                 const std::int32_t *targets, Operand count,
                                 Result to, Classes classes) {
  const std::int64_t token = blockIdx.x, start = token * classes.width;
  const std::int32_t target = targets[token];
  const std::int64_t own = classes.find(target);
  const R top = loadOne<R>(largest, token), sum = loadOne<R>(sums, token),
          all = loadOne<R>(count, 0);
  packsOfRow(classes.width, [&](std::int64_t v, int elements) {
    R x[kPack] = {};
    // Without a target all are zeros, whatever the logits are.
    if (target >= 0) {
      load(logits, start + v, elements, x);
      for (int i = 0; i < kPack; ++i)
        x[i] =
            v + i < classes.real
                ? (exp(x[i] - top) / sum - (v + i == own ? R(1) : R(0))) / all
                : R(0);
    }
    store(to, start + v, elements, x);
  });
}

/// One block. What a sample gives is rounded to f32 unless it comes in f64, and
/// so is their sum unless it goes to one.
__global__ void sumLosses(Operand largest, Operand sums, Operand picked,
                          const std::int32_t *targets, Operand count, Result to,
                          std::int64_t samples, std::int64_t tokens) {
  const bool fromWide = largest.type == ElementType::f64;
  const bool toWide = to.type == ElementType::f64;
  auto rounded = [](bool wide, double value) {
    return wide ? value : static_cast<double>(static_cast<float>(value));
  };
  const double all = loadOne<double>(count, 0);
  double loss = 0.0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    double sum = 0.0;
    for (std::int64_t i = threadIdx.x; i < tokens; i += blockDim.x) {
      const std::int64_t token = sample * tokens + i;
      if (targets[token] >= 0)
        sum += log(loadOne<double>(sums, token)) +
               loadOne<double>(largest, token) - loadOne<double>(picked, token);
    }
    loss = rounded(toWide, loss + rounded(fromWide, sumOverBlock(sum) / all));
  }
  if (threadIdx.x == 0)
    storeOne(to, 0, loss);
}

/// All that go over the rows of the logits.
template <typename R> class Vocab final : public Kernel {
public:
  Vocab(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec), classes(spec),
        tokens(spec.inputs[0].elements() / classes.width) {}

  void run(const Invocation &call) override {
    const Operand logits = operandOf(spec, call, 0);
    const Result to = resultOf(spec, call, 0);
    const Grid blocks{tokens, 1, kThreads};
    auto targets = [&](std::size_t i) {
      return static_cast<const std::int32_t *>(call.inputs[i]);
    };
    if (spec.kernel == "vocab_max")
      launch(*context, blocks, largestOf<R>, logits, to, classes);
    else if (spec.kernel == "vocab_sum_exp")
      launch(*context, blocks, sumExp<R>, logits, operandOf(spec, call, 1), to,
             classes);
    else if (spec.kernel == "vocab_pick")
      launch(*context, {blocksFor(tokens, kThreads), 1, kThreads}, pick<R>,
             logits, targets(1), to, tokens, classes);
    else
      launch(*context, blocks, crossEntropyGrad<R>, logits,
             operandOf(spec, call, 1), operandOf(spec, call, 2), targets(3),
             operandOf(spec, call, 4), to, classes);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Classes classes;
  const std::int64_t tokens;
};

class TokenLoss final : public Kernel {
public:
  TokenLoss(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {}

  void run(const Invocation &call) override {
    const TensorView &view = spec.inputs[3];
    const std::int64_t samples = view.shape.empty() ? 1 : view.shape[0];
    launch(*context, {1, 1, kThreads}, sumLosses, operandOf(spec, call, 0),
           operandOf(spec, call, 1), operandOf(spec, call, 2),
           static_cast<const std::int32_t *>(call.inputs[3]),
           operandOf(spec, call, 4), resultOf(spec, call, 0), samples,
           view.elements() / samples);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
};

} // namespace

MadeKernel makeLoss(const KernelSpec &spec, const SharedContext &context) {
  if (spec.kernel == "token_loss")
    return std::make_unique<TokenLoss>(spec, context);
  return makeOf<Vocab>(spec, context);
}

} // namespace mtplan::runtime::cuda
