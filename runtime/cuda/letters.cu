//===- letters.cu - Einsums that are no products of matrices --------------===//
//
// Each number of the result by itself: where both operands have the result's
// last letter (a gate's scale, "bsh,bs->bsh", and its gradients) there are no
// rows to multiply with columns, and memory is what is waited for.
//
//===----------------------------------------------------------------------===//

#include <string>

#include "runtime/backend/signature.h"
#include "runtime/cuda/elements.cuh"
#include "runtime/cuda/families.h"
#include "runtime/cuda/launch.cuh"

namespace mtplan::runtime::cuda {

namespace {

constexpr int kMostLetters = 8;
constexpr unsigned kThreads = 256;

/// Nested loops over letters, the last one innermost, and how far the operands
/// move on in each.
struct Letters {
  int count = 0;
  std::int64_t sizes[kMostLetters], left[kMostLetters], right[kMostLetters];

  __host__ __device__ std::int64_t steps() const {
    std::int64_t all = 1;
    for (int i = 0; i < count; ++i)
      all *= sizes[i];
    return all;
  }
  __device__ void moveTo(std::int64_t step, std::int64_t &a,
                         std::int64_t &b) const {
    for (int i = count - 1; i >= 0; --i) {
      a += step % sizes[i] * left[i];
      b += step % sizes[i] * right[i];
      step /= sizes[i];
    }
  }
};

/// Lanes share out the terms of one sum: all of a warp, or one.
template <typename R, int Lanes>
__global__ void sumTerms(Operand left, Operand right, Operand bias, Result to,
                         std::int64_t results, std::int64_t columns,
                         Letters kept, Letters summed) {
  const std::int64_t thread =
      std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t result = thread / Lanes;
  // A warp ends as one.
  if (result >= results)
    return;
  std::int64_t a = 0, b = 0;
  kept.moveTo(result, a, b);
  R sum = R(0);
  for (std::int64_t term = thread % Lanes; term < summed.steps();
       term += Lanes) {
    std::int64_t i = a, j = b;
    summed.moveTo(term, i, j);
    sum += loadOne<R>(left, i) * loadOne<R>(right, j);
  }
#pragma unroll
  for (int apart = Lanes / 2; apart > 0; apart /= 2)
    sum += __shfl_xor_sync(0xffffffffU, sum, apart);
  if (thread % Lanes != 0)
    return;
  if (bias.data)
    sum += loadOne<R>(bias, result % columns);
  storeOne(to, result, sum);
}

Letters lettersOf(const KernelSpec &spec, const Equation &equation,
                  const std::string &which) {
  if (which.size() > kMostLetters)
    refuse(spec, "has more than " + std::to_string(kMostLetters) + " letters");
  // Elements to the next of a letter; 0 where a tensor lacks it.
  auto stepIn = [&](std::size_t side, const std::string &letters, char letter) {
    const std::size_t position = letters.find(letter);
    std::int64_t step = position == std::string::npos ? 0 : 1;
    for (std::size_t d = position; step != 0 && ++d < letters.size();)
      step *= spec.inputs[side].shape[d];
    return step;
  };
  Letters all;
  for (const char letter : which) {
    const std::size_t inLeft = equation.lhs.find(letter);
    all.sizes[all.count] =
        inLeft != std::string::npos
            ? spec.inputs[0].shape[inLeft]
            : spec.inputs[1].shape[equation.rhs.find(letter)];
    all.left[all.count] = stepIn(0, equation.lhs, letter);
    all.right[all.count] = stepIn(1, equation.rhs, letter);
    ++all.count;
  }
  return all;
}

template <typename R> class LetterSum final : public Kernel {
public:
  LetterSum(const KernelSpec &theSpec, SharedContext theContext)
      : context(std::move(theContext)), spec(theSpec) {
    const Equation equation(spec);
    std::string contracted;
    for (const char letter : equation.lhs)
      if (equation.result.find(letter) == std::string::npos)
        contracted += letter;
    kept = lettersOf(spec, equation, equation.result);
    summed = lettersOf(spec, equation, contracted);
  }

  void run(const Invocation &call) override {
    if (summed.steps() >= kWarp)
      sum<kWarp>(call);
    else
      sum<1>(call);
  }

  double flops() const override {
    return 2.0 * static_cast<double>(kept.steps() * summed.steps());
  }

private:
  template <int Lanes> void sum(const Invocation &call) const {
    const std::int64_t results = kept.steps();
    const Operand bias = spec.inputs.size() == 3
                             ? operandOf(spec, call, 2)
                             : Operand{nullptr, ElementType::f32};
    const std::int64_t columns =
        kept.count > 0 ? kept.sizes[kept.count - 1] : 1;
    launch(*context, {blocksFor(results * Lanes, kThreads), 1, kThreads},
           sumTerms<R, Lanes>, operandOf(spec, call, 0),
           operandOf(spec, call, 1), bias, resultOf(spec, call, 0), results,
           columns, kept, summed);
  }

  const SharedContext context;
  const KernelSpec spec;
  Letters kept, summed;
};

} // namespace

MadeKernel makeLetterSum(const KernelSpec &spec, const SharedContext &context) {
  return makeOf<LetterSum>(spec, context);
}

} // namespace mtplan::runtime::cuda
