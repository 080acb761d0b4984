//===- balance.cuh - The load-balancing loss of experts ---------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_BALANCE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_BALANCE_CUH

#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/gate.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kBalanceThreads = 128;

template <typename R> struct Balance {
  std::int64_t positions, experts, topK;
  double coefficient;

  /// Returns the factor by which weighExperts multiplies the number of tokens.
  __device__ R scale(const Operand &count) const {
    return static_cast<R>(
        coefficient * static_cast<double>(experts) /
        (loadOne<double>(count, 0) * static_cast<double>(positions)));
  }
};

/// Computes the derivative of the loss with respect to a probability of each
/// expert in each sample: the number of the sample's tokens that choose the
/// expert, times scale(). If `terms` is null, writes the derivative to
/// `slopes`. Otherwise writes the expert's term of the loss to `terms`: the
/// derivative times the sum of the expert's probabilities. A block processes an
/// expert of a sample.
template <typename R>
__global__ void weighExperts(Operand logits, Operand count, Balance<R> all,
                             R *slopes, R *terms) {
  const std::int64_t sample = blockIdx.x / all.experts;
  const std::int64_t expert = blockIdx.x % all.experts;
  R chosen = R(0), shares = R(0);
  for (std::int64_t s = threadIdx.x; s < all.positions; s += kBalanceThreads) {
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

/// Sums the terms of the loss in one thread, in the order of samples.
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

/// Computes the gradient of the logits: the gradient of the probabilities
/// (`slopes`, by sample and expert) is propagated through the softmax. A thread
/// processes a token.
template <typename R>
__global__ void balanceGrad(Operand logits, const R *slopes, Balance<R> all,
                            std::int64_t tokens, Result to) {
  const std::int64_t at = threadOfGrid();
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

template <typename R>
std::size_t balanceScratch(std::int64_t samples, std::int64_t experts) {
  return static_cast<std::size_t>(samples * experts) * sizeof(R);
}

template <typename R>
void balanceLoss(cudaStream_t stream, const Operand &logits,
                 const Operand &count, const Result &to, std::int64_t samples,
                 const Balance<R> &all, void *scratch) {
  R *terms = static_cast<R *>(scratch), *none = nullptr;
  launch(stream, {samples * all.experts, 1, kBalanceThreads}, weighExperts<R>,
         logits, count, all, none, terms);
  launch(stream, {1, 1, kWarp}, addTerms<R>, static_cast<const R *>(terms),
         samples, all.experts, to);
}

template <typename R>
void balanceLossGrad(cudaStream_t stream, const Operand &logits,
                     const Operand &count, const Result &to,
                     std::int64_t samples, const Balance<R> &all,
                     void *scratch) {
  R *slopes = static_cast<R *>(scratch), *none = nullptr;
  const std::int64_t tokens = samples * all.positions;
  launch(stream, {samples * all.experts, 1, kBalanceThreads}, weighExperts<R>,
         logits, count, all, slopes, none);
  launch(stream, gridOf(tokens, kBalanceThreads), balanceGrad<R>, logits,
         static_cast<const R *>(slopes), all, tokens, to);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_BALANCE_CUH
