//===- followed.h - Kernels with a fused consumer ---------------*- C++ -*-===//
//
// With the setting `then` a kernel is a pair: an einsum and `activation`,
// `activation_grad`, `add` or `accumulate`; a sum and `accumulate`; or a
// dropout or the gradient of a norm and `add`. The second kernel takes the
// result of the first as its last operand. With `bias_gradient` an einsum is a
// pair: itself, and the `sum` of its second operand, each with the consumer
// that `then` names. A device may run both at once (cuBLASLt's epilogues), and
// then need not write the values between them.
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

/// Divides operands and results between the two kernels.
struct Pairing {
  /// The first kernel has this many of the first operands and results.
  std::size_t firstInputs = 0, firstOutputs = 1;
  /// Indices of the second kernel's operands among all operands.
  std::vector<std::size_t> secondInputs;
  /// Whether the second kernel's last operand is the first one's first result.
  bool takesResult = true;
};

/// \throws std::runtime_error like Backend::prepare
Pairing pairingOf(const KernelSpec &spec);

/// The operands and results of both kernels.
template <typename T> struct Halves {
  std::vector<T> firstInputs, firstOutputs, secondInputs, secondOutputs;
};

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

/// Returns the two kernels of a pair. The first may be a pair again.
/// \throws std::runtime_error like Backend::prepare
std::pair<KernelSpec, KernelSpec> halvesOf(const KernelSpec &spec);

/// Returns whether both kernels compute in single precision, or both in double.
bool isOfOnePrecision(const KernelSpec &spec);

/// Prepares both kernels to run one after the other.
MadeKernel inTurn(Backend &backend, const KernelSpec &spec);

/// An einsum and its fused consumer, if it has one, as one matrix product
/// without loops or conversions. The product's result is that of the consumer.
/// The einsum's own result is written only if a gelu keeps it. The same holds
/// for a sum beside the einsum.
struct FollowedProduct {
  MatrixShape shape;
  std::size_t lhs = 0, rhs = 1; ///< which operand is a, and b
  std::size_t operands = 2;     ///< of the einsum; a third is the bias
  std::size_t result = 1;       ///< which of the results is c
  std::size_t biasGradient = 0; ///< which of them is the sum, if shape.sums
  /// Whether the operand after the einsum's own is an addend, or the input of a
  /// gelu that forward kept for backward.
  bool takesAddend = false, takesKept = false;
  double flops = 0.0;

  /// Returns none if the kernel is not one such product.
  static std::optional<FollowedProduct> of(const KernelSpec &spec);
  /// Returns the batched product of runs at equal distances. Returns none if
  /// one call cannot compute them, or if a distance is no multiple of
  /// kAlignment.
  static std::optional<FollowedProduct> of(const KernelSpec &spec,
                                           const EvenRuns &runs);
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_FOLLOWED_H
