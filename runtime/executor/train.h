//===- train.h - Many steps of a plan ---------------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_TRAIN_H
#define MTPLAN_RUNTIME_EXECUTOR_TRAIN_H

#include <functional>
#include <memory>

#include "runtime/executor/rank_executor.h"
#include "runtime/metrics/step_record.h"
#include "runtime/training/learning_rate.h"

namespace mtplan::runtime {

struct TrainOptions {
  std::int64_t steps = 100;
  std::uint64_t seed = 1234;
  LearningRate learningRate;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weightDecay = 0.1;
  double clipNorm = 1.0;      ///< 0: no clip
  bool skipNonFinite = false; ///< gradients that are no numbers: skip, not stop
  double deviation = 0.02;    ///< of initial weights
};

/// Data of a step; called by every rank, for steps 1, 2, ...
using DataOfStep = std::function<std::unique_ptr<StepData>(std::int64_t step)>;

/// Trains this rank's part. `seen` is called after every step on rank 0.
/// Returns where the rank's time went.
TimeSpent train(const Plan &plan, World &world, Backend &backend,
                const TrainOptions &options, const DataOfStep &data,
                const std::function<void(const StepRecord &)> &seen);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_TRAIN_H
