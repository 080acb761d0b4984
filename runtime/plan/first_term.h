//===- first_term.h - With what a sum over micro-batches begins -*- C++ -*-===//
//
// Of an `accumulate`, or what has it after it (`then`), the settings say in
// which run its value is stored, whatever was there; in others it is added.
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
/// A copy of the segment, in the model, where all add to one sum.
inline constexpr const char *kFirstTermCopy = "first_term_copy";

struct FirstTerm {
  static constexpr std::int64_t kNone = -1; ///< of either: there is no such
  std::int64_t microBatch = kNone, copy = kNone;

  /// \param theCopy  of the segment, in the model
  bool isOf(std::int64_t theMicroBatch, std::int64_t theCopy) const {
    return theMicroBatch == microBatch && (copy == kNone || theCopy == copy);
  }
};

/// Whether an instruction adds to an output: `accumulate` to its only one, what
/// has it after it to every second.
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

/// Whether there is such an output.
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
