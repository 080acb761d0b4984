//===- train.h - Trains many steps of a plan --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_TRAIN_H
#define MTPLAN_RUNTIME_EXECUTOR_TRAIN_H

#include <functional>
#include <memory>
#include <optional>

#include "runtime/executor/rank_executor.h"
#include "runtime/metrics/step_record.h"
#include "runtime/training/learning_rate.h"
#include "runtime/training/loss_scaler.h"

namespace mtplan::runtime {

struct TrainOptions {
  std::int64_t steps = 100;
  std::uint64_t seed = 1234;
  LearningRate learningRate;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weightDecay = 0.1;
  double clipNorm = 1.0; ///< 0: no clipping
  /// Skips steps with non-finite gradients instead of stopping the run.
  bool skipNonFinite = false;
  std::optional<LossScalerSettings> scaler; ///< set when training in fp16
  double deviation = 0.02; ///< standard deviation of initial weights
  /// Sets the number of steps between two validations; 0 disables validation. A
  /// validation also follows the last step.
  std::int64_t validateEvery = 0;
  /// Sets the number of steps of a validation. The mean of their losses is
  /// weighted by the number of targets.
  std::int64_t validationSteps = 1;
  std::int64_t traceStep = 0; ///< step to trace; 0: none
  double peakFlops = 0.0;     ///< peak of this rank, flop/s; 0: unknown
};

/// Returns the data of a step, counted from 1. Every rank makes this call.
using DataOfStep = std::function<std::unique_ptr<StepData>(std::int64_t step)>;

struct TrainData {
  DataOfStep trained;
  DataOfStep validated; ///< each validation counts its steps from 1
};

/// Holds the progress of a run. A run resumes from this state and from the
/// executor's tensors.
struct TrainState {
  std::int64_t step = 0;    ///< completed steps
  std::int64_t updates = 0; ///< completed steps that were not skipped
  UpdateRuleState rule;
};

/// Holds callbacks, which every rank calls.
struct TrainHooks {
  /// Runs once, before the first step. The callback may load a saved state into
  /// the executor and return the progress of the saved run. If the callback
  /// returns none, the run starts at step 1.
  std::function<std::optional<TrainState>(RankExecutor &executor)> resume;
  /// Runs after every step. If the callback returns false, which all ranks must
  /// do together, the run ends.
  std::function<bool(const TrainState &state)> after;
  /// Runs in every step before parameters and moments change, and once before
  /// they are destroyed, also after an exception. The callback must not throw.
  std::function<void()> beforeUpdate;
};

struct TrainTimes {
  TimeSpent spent;
  /// Holds the instruction times of all steps except the first, which warms up.
  /// If there is only one step, holds the times of that step. On a device,
  /// holds the times of the last timed step, multiplied by `steps`.
  std::vector<InstructionTime> instructions;
  double seconds = 0.0; ///< duration of `steps` steps
  /// Counts the steps that `seconds` and `instructions` cover. On a device,
  /// this is the number of untimed steps after the recording, or 1 if there are
  /// none.
  std::int64_t steps = 0;
  /// Says whether the run is on a device. On a device, `spent` covers only
  /// timed steps, whose streams are serialized.
  bool isOfOneStep = false;
  std::vector<InstructionRun> trace; ///< seconds since the traced step began
  double traceSeconds = 0.0;         ///< duration of the traced step
};

/// Trains up to step `options.steps`, and returns this rank's times. All ranks
/// must call this together. Rank 0 calls `seen` after every step.
TrainTimes train(const Plan &plan, World &world, Backend &backend,
                 const TrainOptions &options, const TrainData &data,
                 const std::function<void(const StepRecord &)> &seen,
                 const TrainHooks &hooks = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TRAIN_H
