//===- kernel_settings.h - Settings of kernels that plans name --*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_PLAN_KERNEL_SETTINGS_H
#define MTPLAN_RUNTIME_PLAN_KERNEL_SETTINGS_H

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Fused consumers
//===----------------------------------------------------------------------===//

/// Names the fused consumer of an einsum, a sum or a dropout in the same
/// instruction (runtime/backend/kernels.md).
inline constexpr const char *kThen = "then";

/// Is 1 for an einsum if the `sum` of its second operand is in the same
/// instruction, with the same fused consumer.
inline constexpr const char *kBiasGradient = "bias_gradient";

//===----------------------------------------------------------------------===//
// The first term of an accumulation
//
// The settings of an `accumulate`, or of a kernel with it as fused consumer
// (`then`), name the run in which its value is stored; other runs add to it.
//===----------------------------------------------------------------------===//

/// Names the micro-batch.
inline constexpr const char *kFirstTerm = "first_term";
/// Names the layer in the model if all layers accumulate into one sum.
inline constexpr const char *kFirstTermCopy = "first_term_copy";

/// The run that stores its value.
struct FirstTerm {
  static constexpr std::int64_t kNone = -1; ///< none is named
  std::int64_t microBatch = kNone, copy = kNone;

  /// \param theCopy  layer in the model
  bool isOf(std::int64_t theMicroBatch, std::int64_t theCopy) const {
    return theMicroBatch == microBatch && (copy == kNone || theCopy == copy);
  }
};

/// Returns whether an instruction accumulates into an output: `accumulate` into
/// its only one, a kernel with it as fused consumer into every second.
inline bool addsTo(const Instruction &instruction, std::size_t output) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  if (!call)
    return false;
  if (call->kernel == "accumulate")
    return output == 0;
  for (const Setting &one : call->settings)
    if (const auto *then = std::get_if<std::string>(&one.value);
        then && one.name == kThen && *then == "accumulate")
      return output % 2 == 1;
  return false;
}

/// Returns whether there is such an output.
inline bool addsUp(const Instruction &instruction) {
  for (std::size_t t = 0; t < instruction.outputs.size(); ++t)
    if (addsTo(instruction, t))
      return true;
  return false;
}

/// Returns the run that stores; a run that the settings do not name is kNone.
inline FirstTerm firstTermOf(const std::vector<Setting> &settings) {
  FirstTerm first;
  for (const Setting &one : settings)
    if (const auto *number = std::get_if<std::int64_t>(&one.value)) {
      if (one.name == kFirstTerm)
        first.microBatch = *number;
      else if (one.name == kFirstTermCopy)
        first.copy = *number;
    }
  return first;
}

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_KERNEL_SETTINGS_H
