//===- train.h - Many steps of a plan ---------------------------*- C++ -*-===//

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
  double clipNorm = 1.0;      ///< 0: no clip
  bool skipNonFinite = false; ///< gradients that are no numbers: skip, not stop
  std::optional<LossScalerSettings> scaler; ///< for training in fp16
  double deviation = 0.02;                  ///< of initial weights
  /// Steps from one validation to the next; also after the last. 0: none.
  std::int64_t validateEvery = 0;
  std::int64_t validationSteps = 1; ///< whose losses are averaged, by targets
  std::int64_t traceStep = 0;       ///< of which to keep a trace; 0: none
  double peakFlops = 0.0;           ///< of this rank, flop/s; 0: unknown
};

/// Called by every rank, for steps 1, 2, ...
using DataOfStep = std::function<std::unique_ptr<StepData>(std::int64_t step)>;

struct TrainData {
  DataOfStep trained;
  DataOfStep validated; ///< from 1 again in each validation
};

/// Where a run stands, beside what the executor holds.
struct TrainState {
  std::int64_t step = 0;    ///< steps done
  std::int64_t updates = 0; ///< those that were not skipped
  UpdateRuleState rule;
};

/// What surrounds the steps; all are called by every rank.
struct TrainHooks {
  /// Once, when all is as before step 1: may fill in the state of another run,
  /// and says where that stood. Nothing: this run begins.
  std::function<std::optional<TrainState>(RankExecutor &executor)> resume;
  /// After every step. False, on all ranks: it was the last.
  std::function<bool(const TrainState &state)> after;
  /// In every step, before parameters and moments change; and before they go,
  /// whatever ends the run. Must not throw.
  std::function<void()> beforeUpdate;
};

/// What a rank knows of its run.
struct TrainTimes {
  TimeSpent spent;
  /// Of all steps but the first, which finds everything cold; of that if there
  /// is no other. On a device: of all that follow the step in which streams
  /// take turns, and are like each other, as if all had been as that; of that
  /// alone if none follows.
  std::vector<InstructionTime> instructions;
  double seconds = 0.0;   ///< of those steps
  std::int64_t steps = 0; ///< as many
  /// `spent` is of steps in which streams took turns, and `instructions` of the
  /// last of these.
  bool isOfOneStep = false;
  std::vector<InstructionRun> trace; ///< seconds since all ranks began the step
  double traceSeconds = 0.0;
};

/// Trains this rank's part, up to step `options.steps`. `seen` is called after
/// every step on rank 0.
TrainTimes train(const Plan &plan, World &world, Backend &backend,
                 const TrainOptions &options, const TrainData &data,
                 const std::function<void(const StepRecord &)> &seen,
                 const TrainHooks &hooks = {});

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TRAIN_H
