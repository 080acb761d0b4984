//===- balance.cu - What an even use of experts costs ---------------------===//

#include "runtime/cuda/block_sum.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/routes.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr unsigned kThreads = 128;

template <typename R> struct Balance {
  std::int64_t positions, experts, topK;
  double coefficient;

  /// The loss's slope by a probability, for each time its expert is chosen.
  __device__ R scale(const Operand &count) const {
    return static_cast<R>(
        coefficient * static_cast<double>(experts) /
        (loadOne<double>(count, 0) * static_cast<double>(positions)));
  }
};

/// A block for each expert of each sample. To `slopes`, by sample and expert:
/// how often it is chosen, times the scale; or, if there is none, to `terms`
/// what it adds to the loss.
template <typename R>
__global__ void weighExperts(Operand logits, Operand count, Balance<R> all,
                             R *slopes, R *terms) {
  const std::int64_t sample = blockIdx.x / all.experts;
  const std::int64_t expert = blockIdx.x % all.experts;
  R chosen = R(0), shares = R(0);
  for (std::int64_t s = threadIdx.x; s < all.positions; s += kThreads) {
    const Token<R> token{logits, (sample * all.positions + s) * all.experts,
                         all.experts};
    token.choose(all.topK, [&](std::int64_t e, R, std::int64_t) {
      chosen += e == expert ? R(1) : R(0);
    });
    if (terms)
      shares += token.softmax().share(token.logit(expert));
  }
  const R slope = sumOverBlock(chosen) * all.scale(count);
  const R share = terms ? sumOverBlock(shares) : R(0);
  if (threadIdx.x > 0)
    return;
  if (terms)
    terms[blockIdx.x] = slope * share;
  else
    slopes[blockIdx.x] = slope;
}

/// One thread: samples in their order.
template <typename R>
__global__ void addTerms(const R *terms, std::int64_t samples,
                         std::int64_t experts, Result to) {
  if (threadIdx.x > 0)
    return;
  R loss = R(0);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    R term = R(0);
    for (std::int64_t e = 0; e < experts; ++e)
      term += terms[sample * experts + e];
    loss += term;
  }
  storeOne(to, 0, loss);
}

/// A thread for each token: softmax backward of its sample's slopes.
template <typename R>
__global__ void balanceGrad(Operand logits, const R *slopes, Balance<R> all,
                            std::int64_t tokens, Result to) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= tokens)
    return;
  const Token<R> token{logits, at * all.experts, all.experts};
  const auto of = token.softmax();
  const R *slope = slopes + at / all.positions * all.experts;
  R projection = R(0);
  for (std::int64_t e = 0; e < all.experts; ++e)
    projection += of.share(token.logit(e)) * slope[e];
  for (std::int64_t e = 0; e < all.experts; ++e)
    storeOne(to, token.start + e,
             of.share(token.logit(e)) * (slope[e] - projection));
}

template <typename R> class BalanceLoss final : public Kernel {
public:
  BalanceLoss(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)),
        spec(theSpec), all{spec.inputs[0].shape[1], spec.inputs[0].shape[2],
                           spec.integer("top_k", 1),
                           spec.number("coefficient", 0.0)},
        samples(spec.inputs[0].shape[0]) {
    context->reserve(static_cast<std::size_t>(samples * all.experts) *
                     sizeof(R));
  }

  void run(const Invocation &call) override {
    const Operand logits = operandOf(spec, call, 0);
    const bool isLoss = spec.kernel == "balance_loss";
    R *kept = context->shared<R>(), *none = nullptr;
    launch(*context, {samples * all.experts, 1, kThreads}, weighExperts<R>,
           logits, operandOf(spec, call, 1), all, isLoss ? none : kept,
           isLoss ? kept : none);
    if (isLoss)
      launch(*context, {1, 1, kWarp}, addTerms<R>, static_cast<const R *>(kept),
             samples, all.experts, resultOf(spec, call, 0));
    else
      launch(*context,
             {blocksFor(samples * all.positions, kThreads), 1, kThreads},
             balanceGrad<R>, logits, static_cast<const R *>(kept), all,
             samples * all.positions, resultOf(spec, call, 0));
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const Balance<R> all;
  const std::int64_t samples;
};

} // namespace

MadeKernel makeBalance(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<BalanceLoss>(spec, context);
}

} // namespace mtplan::runtime::cuda
