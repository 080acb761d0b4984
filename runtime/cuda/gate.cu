//===- gate.cu - How much of each expert a token gets, and where ----------===//

#include "runtime/cuda/families.h"
#include "runtime/cuda/routes.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr unsigned kThreads = 128;

/// A thread for each token: shares of the chosen experts, zeros elsewhere.
template <typename R>
__global__ void gate(Operand logits, Result to, std::int64_t tokens,
                     std::int64_t experts, std::int64_t topK, bool normalise) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
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

/// Softmax backward: with p the shares, d_i = p_i (g_i - sum_j p_j g_j).
/// Normalised gates are a softmax over the chosen alone; the others are one
/// over all, whose unchosen results go nowhere.
template <typename R>
__global__ void gateGrad(Operand logits, Operand above, Result to,
                         std::int64_t tokens, std::int64_t experts,
                         std::int64_t topK, bool normalise) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
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

template <typename R> class Gate final : public Kernel {
public:
  Gate(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        experts(spec.inputs[0].shape[2]),
        tokens(spec.inputs[0].elements() / experts),
        topK(spec.integer("top_k", 1)),
        normalise(spec.integer("normalise", 0) != 0) {}

  void run(const Invocation &call) override {
    const Grid blocks{blocksFor(tokens, kThreads), 1, kThreads};
    if (spec.kernel == "moe_gate")
      launch(*context, blocks, gate<R>, operandOf(spec, call, 0),
             resultOf(spec, call, 0), tokens, experts, topK, normalise);
    else
      launch(*context, blocks, gateGrad<R>, operandOf(spec, call, 0),
             operandOf(spec, call, 1), resultOf(spec, call, 0), tokens, experts,
             topK, normalise);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t experts, tokens, topK;
  const bool normalise;
};

/// A thread for each token: which of its choices an expert is, or -1.
template <typename R>
__global__ void rankExperts(Operand logits, std::int32_t *ranks,
                            std::int64_t tokens, std::int64_t experts,
                            std::int64_t topK) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= tokens)
    return;
  const Token<R> token{logits, at * experts, experts};
  for (std::int64_t e = 0; e < experts; ++e)
    ranks[token.start + e] = -1;
  token.choose(topK, [&](std::int64_t e, R, std::int64_t choice) {
    ranks[token.start + e] = static_cast<std::int32_t>(choice);
  });
}

/// A block for each expert of each sample: tokens queue by choice, then by
/// position. A thread has a stretch of the positions.
__global__ void queueTokens(const std::int32_t *ranks, std::int32_t *slots,
                            std::int64_t positions, std::int64_t experts,
                            std::int64_t topK) {
  __shared__ std::int32_t counts[kThreads];
  const std::int64_t start =
      blockIdx.x / experts * positions * experts + blockIdx.x % experts;
  const std::int64_t stretch = (positions + kThreads - 1) / kThreads;
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
    for (unsigned t = 0; t < kThreads; ++t) {
      if (t < threadIdx.x)
        place += counts[t];
      queued += counts[t];
    }
    __syncthreads(); // before the next choice is counted
    for (std::int64_t s = first; s < last; ++s)
      if (ranks[start + s * experts] == choice)
        slots[start + s * experts] = place++;
  }
}

template <typename R> class Slots final : public Kernel {
public:
  Slots(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        topK(spec.integer("top_k", 1)) {
    context->reserve(static_cast<std::size_t>(spec.inputs[0].elements()) *
                     sizeof(std::int32_t));
  }

  void run(const Invocation &call) override {
    const std::vector<std::int64_t> &shape = spec.inputs[0].shape;
    auto *ranks = context->shared<std::int32_t>();
    launch(*context, {blocksFor(shape[0] * shape[1], kThreads), 1, kThreads},
           rankExperts<R>, operandOf(spec, call, 0), ranks, shape[0] * shape[1],
           shape[2], topK);
    launch(*context, {shape[0] * shape[2], 1, kThreads}, queueTokens,
           static_cast<const std::int32_t *>(ranks),
           static_cast<std::int32_t *>(call.outputs[0]), shape[1], shape[2],
           topK);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const std::int64_t topK;
};

} // namespace

MadeKernel makeGate(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Gate>(spec, context);
}

MadeKernel makeSlots(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<Slots>(spec, context);
}

} // namespace mtplan::runtime::cuda
