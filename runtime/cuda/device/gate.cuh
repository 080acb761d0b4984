//===- gate.cuh - The router's top-k gates and slots ------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_GATE_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_GATE_CUH

#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Holds the logits of a token. One thread processes a token, because experts
/// are few and the row stays in the L1 cache.
template <typename R> struct Token {
  Operand logits;
  std::int64_t start, experts;

  __device__ R logit(std::int64_t expert) const {
    return loadOne<R>(logits, start + expert);
  }

  /// Calls `use(expert, logit, choice)` for the `count` largest logits in
  /// descending order; ties are in the order of experts.
  template <typename Use>
  __device__ void choose(std::int64_t count, Use use) const {
    std::int64_t last = -1;
    R least = R(0);
    for (std::int64_t choice = 0; choice < count; ++choice) {
      std::int64_t best = -1;
      R most = R(0);
      for (std::int64_t e = 0; e < experts; ++e) {
        const R value = logit(e);
        const bool left =
            last < 0 || value < least || (value == least && e > last);
        if (left && (best < 0 || value > most)) {
          best = e;
          most = value;
        }
      }
      if (best < 0) // the other logits are NaN
        return;
      use(best, most, choice);
      last = best;
      least = most;
    }
  }

  /// Holds the largest logit, and the sum of exp(logit - largest).
  struct Softmax {
    R largest, total;
    __device__ R share(R value) const { return exp(value - largest) / total; }
  };
  __device__ Softmax softmax() const {
    Softmax of{-R(INFINITY), R(0)};
    for (std::int64_t e = 0; e < experts; ++e)
      of.largest = logit(e) > of.largest ? logit(e) : of.largest;
    for (std::int64_t e = 0; e < experts; ++e)
      of.total += exp(logit(e) - of.largest);
    return of;
  }
};

inline constexpr unsigned kGateThreads = 128;

/// Computes the gates: the probabilities of the chosen experts, divided by
/// their sum if `normalise`, and zeros for the other experts.
template <typename R>
__global__ void gate(Operand logits, Result to, std::int64_t tokens,
                     std::int64_t experts, std::int64_t topK, bool normalise) {
  const std::int64_t at = threadOfGrid();
  if (at >= tokens)
    return;
  const Token<R> token{logits, at * experts, experts};
  const auto of = token.softmax();
  R total = R(0);
  token.choose(topK, [&](std::int64_t, R value, std::int64_t) {
    total += of.share(value);
  });
  for (std::int64_t e = 0; e < experts; ++e)
    storeOne(to, token.start + e, R(0));
  token.choose(topK, [&](std::int64_t e, R value, std::int64_t) {
    storeOne(to, token.start + e,
             normalise ? of.share(value) / total : of.share(value));
  });
}

/// Computes the gradient of logit i, p_i (g_i - sum_j p_j g_j), from the
/// probabilities p and the gradients g of the gates. Normalized gates are a
/// softmax over the chosen experts; otherwise p is a softmax over all experts,
/// and g is zero for experts that are not chosen.
template <typename R>
__global__ void gateGrad(Operand logits, Operand above, Result to,
                         std::int64_t tokens, std::int64_t experts,
                         std::int64_t topK, bool normalise) {
  const std::int64_t at = threadOfGrid();
  if (at >= tokens)
    return;
  const Token<R> token{logits, at * experts, experts};
  const auto of = token.softmax();
  R total = R(0), projection = R(0);
  token.choose(topK, [&](std::int64_t e, R value, std::int64_t) {
    const R share = of.share(value);
    total += share;
    projection += share * loadOne<R>(above, token.start + e);
  });
  if (normalise)
    projection /= total;
  for (std::int64_t e = 0; e < experts; ++e)
    storeOne(to, token.start + e,
             normalise ? R(0) : -of.share(token.logit(e)) * projection);
  token.choose(topK, [&](std::int64_t e, R value, std::int64_t) {
    const R share = normalise ? of.share(value) / total : of.share(value);
    storeOne(to, token.start + e,
             share * (loadOne<R>(above, token.start + e) - projection));
  });
}

/// Writes the rank of each expert among the token's choices, counted from 0, or
/// -1 if the token does not choose the expert.
template <typename R>
__global__ void rankExperts(Operand logits, std::int32_t *ranks,
                            std::int64_t tokens, std::int64_t experts,
                            std::int64_t topK) {
  const std::int64_t at = threadOfGrid();
  if (at >= tokens)
    return;
  const Token<R> token{logits, at * experts, experts};
  for (std::int64_t e = 0; e < experts; ++e)
    ranks[token.start + e] = -1;
  token.choose(topK, [&](std::int64_t e, R, std::int64_t choice) {
    ranks[token.start + e] = static_cast<std::int32_t>(choice);
  });
}

/// Numbers the tokens of each expert: first the tokens whose first choice is
/// the expert, by position, then the tokens whose second choice is the expert,
/// and so on. A block processes an expert of a sample, and a thread processes a
/// range of positions.
static __global__ void queueTokens(const std::int32_t *ranks,
                                   std::int32_t *slots, std::int64_t positions,
                                   std::int64_t experts, std::int64_t topK) {
  __shared__ std::int32_t counts[kGateThreads];
  const std::int64_t start =
      blockIdx.x / experts * positions * experts + blockIdx.x % experts;
  const std::int64_t stretch = (positions + kGateThreads - 1) / kGateThreads;
  const std::int64_t first = stretch * threadIdx.x;
  const std::int64_t last =
      first + stretch < positions ? first + stretch : positions;
  for (std::int64_t s = first; s < last; ++s)
    if (ranks[start + s * experts] < 0)
      slots[start + s * experts] = -1;
  std::int32_t queued = 0;
  for (std::int64_t choice = 0; choice < topK; ++choice) {
    std::int32_t count = 0;
    for (std::int64_t s = first; s < last; ++s)
      count += ranks[start + s * experts] == choice ? 1 : 0;
    counts[threadIdx.x] = count;
    __syncthreads();
    std::int32_t place = queued;
    for (unsigned t = 0; t < kGateThreads; ++t) {
      if (t < threadIdx.x)
        place += counts[t];
      queued += counts[t];
    }
    __syncthreads(); // `counts` is reused
    for (std::int64_t s = first; s < last; ++s)
      if (ranks[start + s * experts] == choice)
        slots[start + s * experts] = place++;
  }
}

template <typename R>
void moeGate(cudaStream_t stream, const Operand &logits, const Result &to,
             std::int64_t tokens, std::int64_t experts, std::int64_t topK,
             bool normalise) {
  launch(stream, gridOf(tokens, kGateThreads), gate<R>, logits, to, tokens,
         experts, topK, normalise);
}

template <typename R>
void moeGateGrad(cudaStream_t stream, const Operand &logits,
                 const Operand &above, const Result &to, std::int64_t tokens,
                 std::int64_t experts, std::int64_t topK, bool normalise) {
  launch(stream, gridOf(tokens, kGateThreads), gateGrad<R>, logits, above, to,
         tokens, experts, topK, normalise);
}

inline std::size_t moeSlotsScratch(std::int64_t tokens, std::int64_t experts) {
  return static_cast<std::size_t>(tokens * experts) * sizeof(std::int32_t);
}

/// Launches the kernels that write `slots` [samples][positions][experts]: the
/// token's number in the expert's queue, or -1 if the token does not choose the
/// expert.
template <typename R>
void moeSlots(cudaStream_t stream, const Operand &logits, std::int32_t *slots,
              std::int64_t samples, std::int64_t positions,
              std::int64_t experts, std::int64_t topK, void *scratch) {
  auto *ranks = static_cast<std::int32_t *>(scratch);
  const std::int64_t tokens = samples * positions;
  launch(stream, gridOf(tokens, kGateThreads), rankExperts<R>, logits, ranks,
         tokens, experts, topK);
  launch(stream, {samples * experts, 1, kGateThreads}, queueTokens,
         static_cast<const std::int32_t *>(ranks), slots, positions, experts,
         topK);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_GATE_CUH
