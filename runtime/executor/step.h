//===- step.h - The inputs and outputs of a step ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STEP_H
#define MTPLAN_RUNTIME_EXECUTOR_STEP_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/executor/step_data.h"
#include "runtime/executor/step_times.h"
#include "runtime/plan/plan.h"
#include "runtime/training/update_rule.h"

namespace mtplan::runtime {

/// The time of an instruction of the rank's stage, summed over all timed steps
/// so far.
struct InstructionTime {
  /// Null for the gradient norm, which no program contains: of this rank, and
  /// of all ranks if devices decide about the update.
  const Instruction *instruction = nullptr;
  double seconds = 0.0;
};

/// The inputs of a step, which are the same on every rank.
struct StepInput {
  StepData *data = nullptr;
  std::uint64_t seed = 1;
  std::int64_t step = 1; ///< from 1
  UpdateNumbers update;  ///< gradientFactor is ignored if there is a rule
  /// Multiplies the loss and thereby all gradients; reports are unscaled.
  double lossScale = 1.0;
  /// Serializes the streams of a device to time each instruction alone: nothing
  /// overlaps, and nothing is recorded or replayed. If kernels run when they
  /// are called, all steps are timed.
  bool isTimed = false;
  /// Receives the start and end of each instruction of a timed step; may be
  /// null.
  std::vector<InstructionRun> *trace = nullptr;
  /// Decides about clipping, loss scale and non-finite norms, identically on
  /// all ranks. Null: every step updates.
  UpdateRule *rule = nullptr;
  /// Is called before the update changes parameters and moments; may be empty.
  std::function<void()> beforeUpdate;
};

/// The outputs of a step, which are the same on every rank.
struct StepOutput {
  std::map<std::string, double> reports; ///< by label, summed over layers
  double gradientNorm = 0.0;             ///< of all parameters, before clipping
  bool skipped = false;                  ///< nothing was updated
};

/// The key of call counts: the phase of the program ("forward", "backward" or
/// "update"), kind and group of a collective or message. Overlapped collectives
/// belong to "update".
struct CollectiveCount {
  std::string phase, kind, group;
  bool operator==(const CollectiveCount &) const = default;
  bool operator<(const CollectiveCount &other) const {
    return std::tie(phase, kind, group) <
           std::tie(other.phase, other.kind, other.group);
  }
};

/// Seconds, summed over all timed steps so far. `steps` also includes the
/// hosts' exchange of norms and gaps between instructions.
struct TimeSpent {
  double kernels = 0.0, collectives = 0.0, transfers = 0.0, data = 0.0,
         steps = 0.0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_H
