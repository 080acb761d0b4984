//===- step_data.h - What a step is trained on ------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
#define MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H

#include <optional>

#include "runtime/backend/kernel.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// The inputs of one step, of which every rank asks for its pieces.
class StepData {
public:
  virtual ~StepData() = default;
  /// Fills `out`, of `view`'s shape and type: the rank's piece of one
  /// micro-batch. Throws std::runtime_error if there is no such input.
  virtual void fill(const Input &input, int microBatch, const TensorView &view,
                    void *out) = 0;
  /// What the input "count" says: targets in the whole step, at least 1.
  virtual double count() = 0;
};

/// Drawn, not read: the data of ir/interpret, by the same draws.
class DrawnData : public StepData {
public:
  /// \param targets  the first input called "targets" with its whole shape,
  /// from
  ///                 which "count" follows; empty: there is none
  DrawnData(std::uint64_t theSeed, std::int64_t theStep, int theMicroBatches,
            std::int64_t wholeTargets, std::int64_t targetLimit)
      : seed(theSeed), step(theStep), microBatches(theMicroBatches),
        targets(wholeTargets), limit(targetLimit) {}
  void fill(const Input &input, int microBatch, const TensorView &view,
            void *out) override;
  double count() override;

private:
  std::optional<double> counted; ///< targets of the step
  std::uint64_t seed;
  std::int64_t step;
  int microBatches;
  std::int64_t targets, limit;
};

/// DrawnData for all of a plan's steps: finds its targets.
DrawnData drawnDataOf(const Plan &plan, std::uint64_t seed, std::int64_t step);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
