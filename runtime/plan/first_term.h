//===- first_term.h - The first term of an accumulation ---------*- C++ -*-===//
//
// The settings of an `accumulate`, or of a kernel with it as fused consumer
// (`then`), name the run in which its value is stored; other runs add to it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_FIRST_TERM_H
#define MTPLAN_RUNTIME_PLAN_FIRST_TERM_H

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/then_setting.h"

namespace mtplan::runtime {

inline constexpr const char *kFirstTerm = "first_term"; ///< a micro-batch
/// The layer, in the model, if all layers accumulate into one sum.
inline constexpr const char *kFirstTermCopy = "first_term_copy";

struct FirstTerm {
  static constexpr std::int64_t kNone = -1; ///< for either: there is none
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

#endif // MTPLAN_RUNTIME_PLAN_FIRST_TERM_H
