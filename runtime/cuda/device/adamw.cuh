//===- adamw.cuh - The update of parameters ---------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ADAMW_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ADAMW_CUH

#include "runtime/backend/step_numbers.h"
#include "runtime/cuda/device/deal.cuh"

namespace mtplan::runtime::cuda {

template <typename R> struct AdamwNumbers {
  R factor, beta1, beta2, correction1, correction2, epsilon, rate;
  R shrink; ///< 1 - learning rate * decay
  bool updates;

  __device__ void take(const UpdateNumbers &numbers, bool decays) {
    const auto step = static_cast<double>(numbers.step);
    factor = static_cast<R>(numbers.gradientFactor);
    beta1 = static_cast<R>(numbers.beta1);
    beta2 = static_cast<R>(numbers.beta2);
    correction1 = static_cast<R>(1.0 / (1.0 - pow(numbers.beta1, step)));
    correction2 = static_cast<R>(1.0 / (1.0 - pow(numbers.beta2, step)));
    epsilon = static_cast<R>(numbers.epsilon);
    rate = static_cast<R>(numbers.learningRate);
    shrink = static_cast<R>(
        decays ? 1.0 - numbers.learningRate * numbers.weightDecay : 1.0);
    updates = numbers.updates != 0.0;
  }
};

/// What an update is told of a parameter, which may be its own master.
struct Updated {
  Operand gradient;
  Result parameter, master, mean, square;
  std::int64_t elements;
  bool decays;
};

/// With decoupled decay (Loshchilov and Hutter 2019). A step that updates
/// nothing gives the parameter all the same: it may be made in a place of the
/// moment and be gathered from there.
template <typename R>
__device__ void updatePack(const Updated &one, std::int64_t first, int count,
                           const AdamwNumbers<R> &numbers) {
  R slope[kPack], weight[kPack], m[kPack], v[kPack];
  load(standing(one.master), first, count, weight);
  const bool hasMaster = one.parameter.data != one.master.data;
  if (!numbers.updates) {
    if (hasMaster)
      store(one.parameter, first, count, weight);
    return;
  }
  load(one.gradient, first, count, slope);
  load(standing(one.mean), first, count, m);
  load(standing(one.square), first, count, v);
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    const R g = slope[i] * numbers.factor;
    m[i] = numbers.beta1 * m[i] + (R(1) - numbers.beta1) * g;
    v[i] = numbers.beta2 * v[i] + (R(1) - numbers.beta2) * g * g;
    weight[i] = weight[i] * numbers.shrink -
                numbers.rate * (m[i] * numbers.correction1) /
                    (sqrt(v[i] * numbers.correction2) + numbers.epsilon);
  }
  store(one.mean, first, count, m);
  store(one.square, first, count, v);
  store(one.master, first, count, weight);
  if (hasMaster)
    store(one.parameter, first, count, weight);
}

/// One pack a thread.
template <typename R>
__global__ void updateOne(Updated one, const StepNumbers *step) {
  // Powers are dear: once a block.
  __shared__ AdamwNumbers<R> numbers;
  if (threadIdx.x == 0)
    numbers.take(step->update, one.decays);
  __syncthreads();
  const std::int64_t first =
      (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPack;
  if (first < one.elements)
    updatePack(one, first, packAt(first, one.elements), numbers);
}

template <typename R>
__global__ void updateMany(Deal<Updated> all, const StepNumbers *step) {
  __shared__ AdamwNumbers<R> numbers;
  const Share share = all.shares[blockIdx.x];
  const Updated one = all.items[share.tensor];
  if (threadIdx.x == 0)
    numbers.take(step->update, one.decays);
  __syncthreads();
  packsOfPiece(share.piece, one.elements, [&](std::int64_t first, int count) {
    updatePack(one, first, count, numbers);
  });
}

/// Of `elements`; the parameter may be its own master.
/// \param step  on the device
template <typename R>
void adamw(cudaStream_t stream, const Operand &gradient,
           const Result &parameter, const Result &master, const Result &mean,
           const Result &square, std::int64_t elements, const StepNumbers *step,
           bool decays) {
  constexpr unsigned kThreads = 256;
  launch(stream,
         {blocksFor(elements, std::int64_t{kThreads} * kPack), 1, kThreads},
         updateOne<R>,
         Updated{gradient, parameter, master, mean, square, elements, decays},
         step);
}

/// The same of many parameters.
template <typename R>
void adamw(cudaStream_t stream, const Deal<Updated> &all,
           const StepNumbers *step) {
  launch(stream, {all.blocks, 1, kDealThreads}, updateMany<R>, all, step);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ADAMW_CUH
