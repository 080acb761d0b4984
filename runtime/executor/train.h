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

/// Holds the settings of a run.
struct TrainOptions {
  std::int64_t steps = 100;
  std::uint64_t seed = 1234;
  LearningRate learningRate;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weightDecay = 0.1;
  double clipNorm = 1.0; ///< 0: no clipping
  /// Skips steps with non-finite gradients, instead of stopping.
  bool skipNonFinite = false;
  std::optional<LossScalerSettings> scaler; ///< set when training in fp16
  double deviation = 0.02; ///< standard deviation of initial weights
  /// Counts the steps between two validations; 0 means no validation. The last
  /// step is validated, too.
  std::int64_t validateEvery = 0;
  /// Counts the steps of a validation. Their losses are averaged, weighted by
  /// the number of targets.
  std::int64_t validationSteps = 1;
  std::int64_t traceStep = 0; ///< step to trace; 0: none
  double peakFlops = 0.0;     ///< peak of this rank, flop/s; 0: unknown
};

/// Returns the data of a step, counted from 1. Every rank calls this function.
using DataOfStep = std::function<std::unique_ptr<StepData>(std::int64_t step)>;

struct TrainData {
  DataOfStep trained;
  DataOfStep validated; ///< steps start at 1 in each validation
};

/// Holds the progress of a run. A run resumes from this progress and the
/// executor's tensors.
struct TrainState {
  std::int64_t step = 0;    ///< completed steps
  std::int64_t updates = 0; ///< completed steps that were not skipped
  UpdateRuleState rule;
};

/// Lists callbacks around the steps; every rank calls them.
struct TrainHooks {
  /// Is called once, before the first step. It may load a saved state into the
  /// executor and return the state's progress. If it returns none, the run
  /// starts at step 1.
  std::function<std::optional<TrainState>(RankExecutor &executor)> resume;
  /// Is called after every step. Returns false, on all ranks, to end the run.
  std::function<bool(const TrainState &state)> after;
  /// Is called in every step before parameters and moments change, and before
  /// they are destroyed, also after an exception. Must not throw.
  std::function<void()> beforeUpdate;
};

/// Holds the times of a rank's run.
struct TrainTimes {
  TimeSpent spent;
  /// Holds the times over all steps but the first, which warms up, or over the
  /// first if it is the only one. On a device, they are the times of the last
  /// timed step multiplied by `steps`.
  std::vector<InstructionTime> instructions;
  double seconds = 0.0; ///< duration of `steps` steps
  /// Counts the steps that `seconds` and `instructions` cover. On a device,
  /// these are the untimed steps after the recording, or one step if there are
  /// none.
  std::int64_t steps = 0;
  /// Says whether the run is on a device. In that case `spent` covers only
  /// timed steps, with serialized streams, and `instructions` is extrapolated
  /// from one of them.
  bool isOfOneStep = false;
  std::vector<InstructionRun> trace; ///< seconds since the traced step began
  double traceSeconds = 0.0;         ///< duration of the traced step
};

/// Trains up to step `options.steps`. All ranks must call this together. `seen`
/// is called after every step on rank 0. Returns this rank's times.
TrainTimes train(const Plan &plan, World &world, Backend &backend,
                 const TrainOptions &options, const TrainData &data,
                 const std::function<void(const StepRecord &)> &seen,
                 const TrainHooks &hooks = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TRAIN_H
