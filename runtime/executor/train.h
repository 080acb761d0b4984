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
  /// Skip steps with non-finite gradients, instead of stopping.
  bool skipNonFinite = false;
  std::optional<LossScalerSettings> scaler; ///< for training in fp16
  double deviation = 0.02;                  ///< of initial weights
  /// Steps between validations; one follows the last step. 0: none.
  std::int64_t validateEvery = 0;
  /// Number of steps whose losses are averaged, weighted by targets.
  std::int64_t validationSteps = 1;
  std::int64_t traceStep = 0; ///< step to trace; 0: none
  double peakFlops = 0.0;     ///< of this rank, flop/s; 0: unknown
};

/// Returns the data of steps 1, 2, ...; called by every rank.
using DataOfStep = std::function<std::unique_ptr<StepData>(std::int64_t step)>;

struct TrainData {
  DataOfStep trained;
  DataOfStep validated; ///< from 1 again in each validation
};

/// The position of a run, beside the state of the executor.
struct TrainState {
  std::int64_t step = 0;    ///< completed steps
  std::int64_t updates = 0; ///< those that were not skipped
  UpdateRuleState rule;
};

/// Callbacks around the steps; every rank calls them.
struct TrainHooks {
  /// Is called once in the state before step 1. It may load the state of
  /// another run and return its position. None: the run starts anew.
  std::function<std::optional<TrainState>(RankExecutor &executor)> resume;
  /// Is called after every step. Returns false, on all ranks, if it was the
  /// last.
  std::function<bool(const TrainState &state)> after;
  /// Is called in every step before parameters and moments change, and before
  /// they are destroyed, however the run ends. Must not throw.
  std::function<void()> beforeUpdate;
};

/// Times of a rank's run.
struct TrainTimes {
  TimeSpent spent;
  /// Of all steps but the first, which warms up; of the first if there is no
  /// other. On a device: of all steps after the timed one, with the shares of
  /// the timed one; of that alone if none follows.
  std::vector<InstructionTime> instructions;
  double seconds = 0.0;   ///< of those steps
  std::int64_t steps = 0; ///< number of those steps
  /// Whether `spent` is of steps in which streams took turns, and
  /// `instructions` of the last of these.
  bool isOfOneStep = false;
  std::vector<InstructionRun> trace; ///< seconds since all ranks began the step
  double traceSeconds = 0.0;
};

/// Trains this rank's part up to step `options.steps`. `seen` is called after
/// every step on rank 0.
TrainTimes train(const Plan &plan, World &world, Backend &backend,
                 const TrainOptions &options, const TrainData &data,
                 const std::function<void(const StepRecord &)> &seen,
                 const TrainHooks &hooks = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TRAIN_H
