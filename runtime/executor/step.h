//===- step.h - What goes into a step, and what comes out -------*- C++ -*-===//

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

/// The time that an instruction of the rank's stage took in all timed steps so
/// far.
struct InstructionTime {
  /// Null stands for the gradient norm, of this rank and, where devices decide,
  /// of all ranks; no program contains it.
  const Instruction *instruction = nullptr;
  double seconds = 0.0;
};

/// The inputs of a step that every rank knows before it runs.
struct StepInput {
  StepData *data = nullptr;
  std::uint64_t seed = 1;
  std::int64_t step = 1; ///< from 1
  UpdateNumbers update;  ///< gradientFactor is unread if there is a rule
  /// Scales the loss, and so all gradients; reports are unscaled.
  double lossScale = 1.0;
  /// Whether the streams of a device take turns, so that each instruction is
  /// timed alone: nothing overlaps, and nothing is recorded or replayed. If
  /// kernels run when they are called, all steps are timed.
  bool isTimed = false;
  /// Receives when each instruction of a timed step ran, unless it is null.
  std::vector<InstructionRun> *trace = nullptr;
  /// Decides about clipping, loss scale and norms that are not finite, equally
  /// on all ranks. Null: every step updates.
  UpdateRule *rule = nullptr;
  /// Is called before the update, unless it is empty. Until then parameters and
  /// moments are those of the step before.
  std::function<void()> beforeUpdate;
};

/// The outputs of a step that every rank knows.
struct StepOutput {
  std::map<std::string, double> reports; ///< of all stages; layers are summed
  double gradientNorm = 0.0;             ///< of all parameters, before clipping
  bool skipped = false;                  ///< nothing was updated
};

/// Counts the calls of a collective, by the phase of its program ("forward",
/// "backward" or "update"), kind and group. Overlapped collectives belong to
/// the update.
struct CollectiveCount {
  std::string phase, kind, group;
  bool operator==(const CollectiveCount &) const = default;
  bool operator<(const CollectiveCount &other) const {
    return std::tie(phase, kind, group) <
           std::tie(other.phase, other.kind, other.group);
  }
};

/// Seconds of all timed steps so far. `steps` also includes the hosts' exchange
/// of norms and the time between instructions.
struct TimeSpent {
  double kernels = 0.0, collectives = 0.0, transfers = 0.0, data = 0.0,
         steps = 0.0;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_H
