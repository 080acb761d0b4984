//===- followed.h - A kernel that another one follows -----------*- C++ -*-===//
//
// With the setting `then` a kernel is two: an einsum and `activation`,
// `activation_grad`, `add` or `accumulate`, or a dropout and `add`. The second
// takes the result of the first as its last operand. A device may do both at
// once (cuBLASLt's epilogues), and then need not write what lies between them.
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

/// Operands of both halves, and results.
template <typename T> struct Halves {
  std::vector<T> firstInputs, firstOutputs, secondInputs, secondOutputs;
};

/// How many operands `then` has before the first's result, or -1 if it is no
/// kernel that may follow another.
int operandsBefore(const std::string &then);

/// \param inputs   the first's operands, then those before its result
/// \param outputs  the first's result, the second's
/// There must be as many as that.
template <typename T>
Halves<T> halvesOf(const std::string &then, const std::vector<T> &inputs,
                   const std::vector<T> &outputs) {
  const auto own = inputs.end() - operandsBefore(then);
  Halves<T> halves{
      {inputs.begin(), own}, {outputs[0]}, {own, inputs.end()}, {outputs[1]}};
  halves.secondInputs.push_back(outputs[0]);
  return halves;
}

/// The two kernels of one with `then`.
/// \throws std::runtime_error as Backend::prepare does
std::pair<KernelSpec, KernelSpec> halvesOf(const KernelSpec &spec);

/// Whether both halves compute in single precision, or both in double.
bool isOfOnePrecision(const KernelSpec &spec);

/// Runs both, one after the other.
MadeKernel inTurn(Backend &backend, const KernelSpec &spec);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_BACKEND_FOLLOWED_H
