//===- loss.cuh - Cross entropy over rows of logits -------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_LOSS_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_LOSS_CUH

#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

inline constexpr unsigned kLossThreads = 256;

/// Describes the classes in a shard of the logits: the first class, the width
/// of a row, and the width without padding.
struct Classes {
  std::int64_t offset, width, real;

  /// Returns the index of class `target` in a row, or -1 if this shard does not
  /// hold the class.
  __device__ std::int64_t find(std::int32_t target) const {
    const std::int64_t local = std::int64_t{target} - offset;
    return target >= 0 && local >= 0 && local < width ? local : -1;
  }
};

/// Computes the maximum of each row. A block processes a row.
template <typename R>
__global__ void largestOf(Operand logits, Result to, Classes classes) {
  const std::int64_t start = std::int64_t{blockIdx.x} * classes.width;
  // The result for a shard that holds only padding is the neutral element of
  // max.
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

/// Computes the sum of exp(logit - largest) of each row.
template <typename R>
__global__ void sumExp(Operand logits, Operand largest, Result to,
                       Classes classes) {
  const std::int64_t start = std::int64_t{blockIdx.x} * classes.width;
  const R top = loadOne<R>(largest, blockIdx.x);
  R sum = R(0);
  auto add = [&](std::int64_t, int count, R(&x)[kPack]) {
    if (count < kPack)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        x[i] = i < count ? x[i] : -R(INFINITY);
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      sum += exp(x[i] - top);
  };
  loadedPacksOfRow<R>(logits, start, classes.real, add);
  sum = sumOverBlock(sum);
  if (threadIdx.x == 0)
    storeOne(to, blockIdx.x, sum);
}

/// Writes the logit of each token's target, or 0 if this shard does not hold
/// that logit. A thread processes a token.
template <typename R>
__global__ void pick(Operand logits, const std::int32_t *targets, Result to,
                     std::int64_t tokens, Classes classes) {
  const std::int64_t token = threadOfGrid();
  if (token >= tokens)
    return;
  const std::int64_t v = classes.find(targets[token]);
  storeOne(to, token,
           v < 0 ? R(0) : loadOne<R>(logits, token * classes.width + v));
}

/// Computes the gradients of the logits: (softmax - one-hot target) / count.
template <typename R>
__global__ void slopesOfLogits(Operand logits, Operand largest, Operand sums,
                               const std::int32_t *targets, Operand count,
                               Result to, Classes classes) {
  const std::int64_t token = blockIdx.x, start = token * classes.width;
  const std::int32_t target = targets[token];
  const std::int64_t own = classes.find(target);
  // The gradient of an ignored token is zero, even if its logits are NaN.
  if (target < 0) {
    packsOfRow(classes.width, [&](std::int64_t v, int elements) {
      const R none[kPack] = {};
      store(to, start + v, elements, none);
    });
    return;
  }
  const R top = loadOne<R>(largest, token), share = R(1) / loadOne<R>(count, 0),
          factor = share / loadOne<R>(sums, token);
  auto put = [&](std::int64_t v, int elements, R(&x)[kPack]) {
#pragma unroll
    for (int i = 0; i < kPack; ++i)
      x[i] = exp(x[i] - top) * factor;
    if (v <= own && own < v + kPack)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        x[i] -= v + i == own ? share : R(0);
    if (classes.real < v + kPack)
#pragma unroll
      for (int i = 0; i < kPack; ++i)
        x[i] = v + i < classes.real ? x[i] : R(0);
    store(to, start + v, elements, x);
  };
  loadedPacksOfRow<R>(logits, start, classes.width, put);
}

/// Sums the losses in one block. Rounds the loss of each sample to f32 unless
/// the operands are f64, and the sum after each sample unless the result is
/// f64.
static __global__ void sumLosses(Operand largest, Operand sums, Operand picked,
                                 const std::int32_t *targets, Operand count,
                                 Result to, std::int64_t samples,
                                 std::int64_t tokens) {
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

template <typename R>
void vocabMax(cudaStream_t stream, const Operand &logits, const Result &to,
              std::int64_t tokens, const Classes &classes) {
  launch(stream, {tokens, 1, kLossThreads}, largestOf<R>, logits, to, classes);
}

template <typename R>
void vocabSumExp(cudaStream_t stream, const Operand &logits,
                 const Operand &largest, const Result &to, std::int64_t tokens,
                 const Classes &classes) {
  launch(stream, {tokens, 1, kLossThreads}, sumExp<R>, logits, largest, to,
         classes);
}

template <typename R>
void vocabPick(cudaStream_t stream, const Operand &logits,
               const std::int32_t *targets, const Result &to,
               std::int64_t tokens, const Classes &classes) {
  launch(stream, gridOf(tokens, kLossThreads), pick<R>, logits, targets, to,
         tokens, classes);
}

template <typename R>
void crossEntropyGrad(cudaStream_t stream, const Operand &logits,
                      const Operand &largest, const Operand &sums,
                      const std::int32_t *targets, const Operand &count,
                      const Result &to, std::int64_t tokens,
                      const Classes &classes) {
  launch(stream, {tokens, 1, kLossThreads}, slopesOfLogits<R>, logits, largest,
         sums, targets, count, to, classes);
}

/// \param tokens  the number of tokens per sample
inline void tokenLoss(cudaStream_t stream, const Operand &largest,
                      const Operand &sums, const Operand &picked,
                      const std::int32_t *targets, const Operand &count,
                      const Result &to, std::int64_t samples,
                      std::int64_t tokens) {
  launch(stream, {1, 1, kLossThreads}, sumLosses, largest, sums, picked,
         targets, count, to, samples, tokens);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_LOSS_CUH
