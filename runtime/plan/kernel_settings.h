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

/// This setting names the consumer that is fused into an einsum, a sum, a
/// dropout or the gradient of a norm (runtime/backend/kernels.md).
inline constexpr const char *kThen = "then";

/// This setting is 1 if an einsum also computes the `sum` of its second
/// operand. A fused consumer (`then`) then applies to both results.
inline constexpr const char *kBiasGradient = "bias_gradient";

//===----------------------------------------------------------------------===//
// The first term of an accumulation
//
// An `accumulate` is a separate kernel, or the fused consumer (`then`) of
// another kernel. In the run that these settings name, the kernel overwrites
// its sum. In all other runs, the kernel adds to the sum.
//===----------------------------------------------------------------------===//

/// This setting is the micro-batch of the run that overwrites the sum.
inline constexpr const char *kFirstTerm = "first_term";
/// This setting is the layer of the run that overwrites the sum. Layers are
/// numbered over the whole model. The setting is needed only if all layers
/// accumulate into one sum.
inline constexpr const char *kFirstTermCopy = "first_term_copy";

struct FirstTerm {
  static constexpr std::int64_t kNone = -1; ///< the settings name no run
  std::int64_t microBatch = kNone, copy = kNone;

  /// \param theCopy  number of the layer in the whole model
  bool isOf(std::int64_t theMicroBatch, std::int64_t theCopy) const {
    return theMicroBatch == microBatch && (copy == kNone || theCopy == copy);
  }
};

/// Returns whether an instruction accumulates into an output. The kernel
/// `accumulate` has a single output, which is the sum. For a kernel with a
/// fused `accumulate`, every second output is a sum.
inline bool accumulatesInto(const Instruction &instruction,
                            std::size_t output) {
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

inline bool accumulates(const Instruction &instruction) {
  for (std::size_t t = 0; t < instruction.outputs.size(); ++t)
    if (accumulatesInto(instruction, t))
      return true;
  return false;
}

/// Returns the run that the settings name. Members without a setting are kNone.
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
