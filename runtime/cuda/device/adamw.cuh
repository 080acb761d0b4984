//===- adamw.cuh - AdamW, gradient clipping, unscaling ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CUDA_DEVICE_ADAMW_CUH
#define MTPLAN_RUNTIME_CUDA_DEVICE_ADAMW_CUH

#include "runtime/backend/step_numbers.h"
#include "runtime/cuda/device/block_sum.cuh"
#include "runtime/cuda/device/elements.cuh"

namespace mtplan::runtime::cuda {

/// Computes the gradient factor and whether the step is skipped. The bits equal
/// those of runtime/training/gradient_factor.h, because one thread adds in the
/// same order and the compiler contracts no operations. `decision` may point
/// into `step`.
static __global__ void decideFactor(const DeviceLongSum *sums,
                                    std::int64_t ranks, const StepNumbers *step,
                                    double *decision) {
  const NormRule rule = step->norm;
  if (!rule.applies) {
    decision[1] = 1.0;
    return;
  }
  DeviceLongSum all{0.0, 0.0};
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    all.add(sums[rank]);
  const double squares = all.value();
  const double norm = sqrt(squares) / rule.lossScale;
  const double clipped = rule.clip / (norm + 1e-6);
  double factor = 1.0 / rule.lossScale;
  if (rule.clip > 0.0 && clipped < 1.0)
    factor *= clipped;
  decision[0] = factor;
  decision[1] = isfinite(squares) ? 1.0 : 0.0;
}

/// Queues decideFactor. All pointers are to device memory.
/// \param sums  each rank's sum of the squares of its gradients
/// \param decision  receives two numbers: the gradient factor, and 1 if
/// parameters are updated or 0 after an overflow. If the norm rule does not
/// apply, the second number is 1 and the factor is not written.
inline void gradientFactor(cudaStream_t stream, const DeviceLongSum *sums,
                           std::int64_t ranks, const StepNumbers *step,
                           double *decision) {
  launch(stream, {1, 1, 1}, decideFactor, sums, ranks, step, decision);
}

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

/// Holds the tensors of a parameter to update. `parameter` and `master` may be
/// the same tensor.
struct Updated {
  Operand gradient;
  Result parameter, master, mean, square;
  std::int64_t elements;
  bool decays;
};

/// Updates a pack by AdamW (Loshchilov and Hutter 2019). A skipped step still
/// copies the master weights to the parameter, because the parameter may be a
/// temporary buffer that an all-gather reads.
template <typename R>
__device__ void updatePack(const Updated &one, std::int64_t first, int count,
                           const AdamwNumbers<R> &numbers) {
  const bool hasMaster = one.parameter.data != one.master.data;
  if (!numbers.updates) {
    R master[kPack];
    load(standing(one.master), first, count, master);
    if (hasMaster)
      store(one.parameter, first, count, master);
    return;
  }
  R packs[4][kPack];
  loadTogether<R, 4>({standing(one.master), one.gradient, standing(one.mean),
                      standing(one.square)},
                     first, count, packs);
  auto &weight = packs[0], &slope = packs[1], &m = packs[2], &v = packs[3];
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

/// Returns the number of blocks per multiprocessor for which the registers must
/// suffice.
constexpr int updateBlocks(bool isDouble) { return isDouble ? 1 : 3; }

/// Updates one parameter. A block processes a piece of kListPiece elements.
template <typename R>
__global__ void __launch_bounds__(kListThreads,
                                  updateBlocks(sizeof(R) == sizeof(double)))
    updateOne(Updated one, const StepNumbers *step) {
  // The bias corrections use pow(), which is slow, so one thread of a block
  // computes them.
  __shared__ AdamwNumbers<R> numbers;
  if (threadIdx.x == 0)
    numbers.take(step->update, one.decays);
  __syncthreads();
  packsOfPiece(blockIdx.x, one.elements, [&](std::int64_t first, int count) {
    updatePack(one, first, count, numbers);
  });
}

/// Updates many parameters. A block processes a piece of one parameter.
template <typename R>
__global__ void __launch_bounds__(kListThreads,
                                  updateBlocks(sizeof(R) == sizeof(double)))
    updateMany(TensorList<Updated> all, const StepNumbers *step) {
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

/// Queues the update of one parameter; `step` points to device memory.
template <typename R>
void adamw(cudaStream_t stream, const Operand &gradient,
           const Result &parameter, const Result &master, const Result &mean,
           const Result &square, std::int64_t elements, const StepNumbers *step,
           bool decays) {
  launch(stream, {blocksFor(elements, kListPiece), 1, kListThreads},
         updateOne<R>,
         Updated{gradient, parameter, master, mean, square, elements, decays},
         step);
}

template <typename R>
void adamw(cudaStream_t stream, const TensorList<Updated> &all,
           const StepNumbers *step) {
  launch(stream, {all.blocks, 1, kListThreads}, updateMany<R>, all, step);
}

} // namespace mtplan::runtime::cuda

#endif // MTPLAN_RUNTIME_CUDA_DEVICE_ADAMW_CUH
