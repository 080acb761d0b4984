//===- adamw.cu - The update of parameters --------------------------------===//

#include <cmath>

#include "runtime/cuda/families.h"
#include "runtime/cuda/rows.cuh"

namespace mtplan::runtime::cuda {

namespace {

template <typename R> struct AdamwNumbers {
  R factor, beta1, beta2, correction1, correction2, epsilon, rate;
  R shrink; ///< 1 - learning rate * decay

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
  }
};

/// With decoupled decay (Loshchilov and Hutter 2019). One pack a thread. The
/// parameter may be its own master.
template <typename R>
__global__ void updateEach(Operand gradient, Result parameter, Result master,
                           Result mean, Result square, std::int64_t elements,
                           const StepNumbers *step, bool decays) {
  // Powers are dear: once a block.
  __shared__ AdamwNumbers<R> numbers;
  if (threadIdx.x == 0)
    numbers.take(step->update, decays);
  __syncthreads();
  const std::int64_t first =
      (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPack;
  if (first >= elements)
    return;
  const int count = packAt(first, elements);
  R slope[kPack], weight[kPack], m[kPack], v[kPack];
  load(gradient, first, count, slope);
  load(standing(master), first, count, weight);
  load(standing(mean), first, count, m);
  load(standing(square), first, count, v);
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
    const R g = slope[i] * numbers.factor;
    m[i] = numbers.beta1 * m[i] + (R(1) - numbers.beta1) * g;
    v[i] = numbers.beta2 * v[i] + (R(1) - numbers.beta2) * g * g;
    weight[i] = weight[i] * numbers.shrink -
                numbers.rate * (m[i] * numbers.correction1) /
                    (sqrt(v[i] * numbers.correction2) + numbers.epsilon);
  }
  store(mean, first, count, m);
  store(square, first, count, v);
  store(master, first, count, weight);
  if (parameter.data != master.data)
    store(parameter, first, count, weight);
}

template <typename R> class Adamw final : public Kernel {
public:
  Adamw(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec),
        decays(spec.integer("decay", 0) != 0) {}

  void run(const Invocation &call) override {
    const std::int64_t elements = spec.inputs[0].elements();
    constexpr unsigned kThreads = 256;
    launch(*context,
           {blocksFor(elements, std::int64_t{kThreads} * kPack), 1, kThreads},
           updateEach<R>, operandOf(spec, call, 0), resultOf(spec, call, 0),
           resultOf(spec, call, 1), resultOf(spec, call, 2),
           resultOf(spec, call, 3), elements, call.step, decays);
  }

private:
  const SharedContext context;
  const KernelSpec spec;
  const bool decays;
};

} // namespace

MadeKernel makeAdamw(const KernelSpec &spec, const SharedContext &context) {
  if (spec.outputs[1].type == ElementType::f64)
    return std::make_unique<Adamw<double>>(spec, context);
  return std::make_unique<Adamw<float>>(spec, context);
}

} // namespace mtplan::runtime::cuda
