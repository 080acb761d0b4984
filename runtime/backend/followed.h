//===- followed.h - A kernel that another one follows -----------*- C++ -*-===//
//
// With the setting `then` a kernel is two: an einsum and `activation`,
// `activation_grad`, `add` or `accumulate`, a sum and `accumulate`, or a
// dropout or the gradient of a norm and `add`. The second takes the result of
// the first as its last operand. With `bias_gradient` an einsum is two: itself,
// and the `sum` of its second operand, each with what `then` says. A device may
// do both at once (cuBLASLt's epilogues), and then need not write what lies
// between them.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_BACKEND_FOLLOWED_H
#define MTPLAN_RUNTIME_BACKEND_FOLLOWED_H

#include <string>
#include <utility>
#include <vector>

#include "runtime/backend/made_kernel.h"
#include "runtime/plan/then_setting.h"

namespace mtplan::runtime {

/// Whether a kernel is two.
bool isOfTwo(const KernelSpec &spec);

/// Which operands and results of both kernels are whose.
struct Pairing {
  std::size_t firstInputs = 0, firstOutputs = 1; ///< the first of all
  std::vector<std::size_t> secondInputs;         ///< among all operands
  bool takesResult = true; ///< and after them the first's first result
};

/// \throws std::runtime_error as Backend::prepare does
Pairing pairingOf(const KernelSpec &spec);

/// Operands of both halves, and results.
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

/// The two kernels of one; the first may be two again.
/// \throws std::runtime_error as Backend::prepare does
std::pair<KernelSpec, KernelSpec> halvesOf(const KernelSpec &spec);

/// Whether both halves compute in single precision, or both in double.
bool isOfOnePrecision(const KernelSpec &spec);

/// Runs both, one after the other.
MadeKernel inTurn(Backend &backend, const KernelSpec &spec);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_FOLLOWED_H
