//===- followed.h - Kernels with a fused consumer ---------------*- C++ -*-===//
//
// A kernel with the setting `then` is a pair: an einsum and `activation`,
// `activation_grad`, `add` or `accumulate`; a sum and `accumulate`; or `add`
// after a dropout or after the gradient of a norm. The last operand of the
// second kernel is the result of the first. An einsum with `bias_gradient` is a
// pair too: the einsum and the `sum` of its second operand, each with the
// consumer that `then` names, if any. A device may fuse both kernels
// (cuBLASLt's epilogues). The fused kernel need not write the result of the
// first, except for an `activation`, whose gradient reads that result.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_FOLLOWED_H
#define MTPLAN_RUNTIME_BACKEND_FOLLOWED_H

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend/einsum.h"
#include "runtime/backend/kernel.h"
#include "runtime/plan/kernel_settings.h"

namespace mtplan::runtime {

/// Returns whether a kernel is a pair.
bool isOfTwo(const KernelSpec &spec);

/// Assigns the operands and results of a pair to its two kernels.
struct Pairing {
  /// Count the leading operands and results that belong to the first kernel.
  std::size_t firstInputs = 0, firstOutputs = 1;
  /// Lists the second kernel's operands, except the first kernel's result, by
  /// their indices among all operands.
  std::vector<std::size_t> secondInputs;
  /// Says whether the first kernel's result is the second's last operand.
  bool takesResult = true;
};

/// Returns the pairing of a kernel for which isOfTwo is true.
/// \throws std::runtime_error like Backend::prepare
Pairing pairingOf(const KernelSpec &spec);

template <typename T> struct Halves {
  std::vector<T> firstInputs, firstOutputs, secondInputs, secondOutputs;
};

/// Returns the operands and results of each kernel, in that kernel's order.
template <typename T>
Halves<T> halvesOf(const Pairing &pairing, const std::vector<T> &inputs,
                   const std::vector<T> &outputs) {
  const auto own = static_cast<std::ptrdiff_t>(pairing.firstInputs),
             made = static_cast<std::ptrdiff_t>(pairing.firstOutputs);
  Halves<T> halves{{inputs.begin(), inputs.begin() + own},
                   {outputs.begin(), outputs.begin() + made},
                   {},
                   {outputs.begin() + made, outputs.end()}};
  for (const std::size_t i : pairing.secondInputs)
    halves.secondInputs.push_back(inputs[i]);
  if (pairing.takesResult)
    halves.secondInputs.push_back(outputs[0]);
  return halves;
}

/// Returns the two kernels of a pair. The first may itself be a pair.
/// \throws std::runtime_error like Backend::prepare
std::pair<KernelSpec, KernelSpec> halvesOf(const KernelSpec &spec);

/// Returns whether both kernels compute in the same precision.
bool isOfOnePrecision(const KernelSpec &spec);

/// Prepares a pair as two kernels that run one after the other.
MadeKernel makeSequential(Backend &backend, const KernelSpec &spec);

/// Describes an einsum, with its fused consumer and bias gradient if any, as
/// one matrix product without loops or conversions. If there is a consumer, the
/// product writes the consumer's results. The product writes the einsum's own
/// result as well only if the consumer is a gelu, whose backward reads it.
struct FollowedProduct {
  MatrixShape shape;
  std::size_t lhs = 0, rhs = 1; ///< operand indices of a and b
  /// Counts the operands of the einsum: 2, or 3 with a bias.
  std::size_t operands = 2;
  std::size_t result = 1;       ///< index of c among the results
  std::size_t biasGradient = 0; ///< index of the bias gradient, if any
  /// If `takesAddend`, the operand after the einsum's operands is an addend. If
  /// `takesKept`, that operand is the argument of gelu, which forward has
  /// saved.
  bool takesAddend = false, takesKept = false;
  double flops = 0.0;

  /// Returns the product of a kernel, or none if one product cannot compute the
  /// kernel.
  static std::optional<FollowedProduct> of(const KernelSpec &spec);
  /// Returns the batched product of runs at constant strides. Returns none if
  /// one library call cannot compute the batch, or if a stride is no multiple
  /// of kAlignment.
  static std::optional<FollowedProduct> of(const KernelSpec &spec,
                                           const EvenRuns &runs);
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_FOLLOWED_H
