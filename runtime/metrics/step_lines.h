//===- step_lines.h - Steps as JSON lines -----------------------*- C++ -*-===//
//
// One object a step and line. The names are a contract: they are added to, not
// changed; `version` counts what had to break it.
//
//   step loss gradient_norm learning_rate loss_scale? skipped tokens seconds
//   tokens_per_second flops_per_rank? share_of_peak? memory_bytes?
//   validation_loss? perplexity? version
//
// A `?` is left out where unknown. Numbers are the shortest that read back the
// same; infinity and no number, which JSON does not have, are null.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_METRICS_STEP_LINES_H
#define MTPLAN_RUNTIME_METRICS_STEP_LINES_H

#include <cstdint>
#include <string>

#include "runtime/metrics/step_record.h"

namespace mtplan::runtime {

inline constexpr int kStepLinesVersion = 1;

/// With its line break.
std::string jsonLine(const StepRecord &record);

/// Cuts a log off before the first line of a step above `step`, and half a line
/// at its end: a run that goes on from a checkpoint writes those steps again.
/// A file that is not there is left so. Returns the number of lines cut off.
/// \throws std::runtime_error if it cannot be read or cut
std::int64_t cutStepsAfter(const std::string &path, std::int64_t step);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_METRICS_STEP_LINES_H
