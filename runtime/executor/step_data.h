//===- step_data.h - Training data of a step --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
#define MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H

#include <optional>

#include "runtime/backend/kernel.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// The training data of one step, of which every rank reads its shards.
class StepData {
public:
  virtual ~StepData() = default;
  /// Fills `out`, of the view's shape and type, with the rank's shard of one
  /// micro-batch. Throws std::runtime_error if there is no such input.
  virtual void fill(const Input &input, int microBatch, const TensorView &view,
                    void *out) = 0;
  /// Returns the value of the input "count": the number of targets in the whole
  /// step, at least 1.
  virtual double count() = 0;
};

/// Random inputs, equal to those of ir/interpret. A sample depends only on the
/// seed and its number in the run, not on the size of micro-batch or step.
class DrawnData : public StepData {
public:
  /// \param theFirst      number of the step's first sample, from 0
  /// \param theSamples    samples of a micro-batch, over all replicas
  /// \param wholeTargets  elements of "targets" in a micro-batch, over all
  ///                      ranks, for "count"; 0 if there is no such input
  DrawnData(std::uint64_t theSeed, std::int64_t theFirst,
            std::int64_t theSamples, int theMicroBatches,
            std::int64_t wholeTargets, std::int64_t targetLimit)
      : seed(theSeed), first(theFirst), samples(theSamples),
        microBatches(theMicroBatches), targets(wholeTargets),
        limit(targetLimit) {}
  void fill(const Input &input, int microBatch, const TensorView &view,
            void *out) override;
  double count() override;

private:
  /// Returns the index in the random stream of a micro-batch's first element.
  std::int64_t indexOf(int microBatch, std::int64_t elements) const {
    return first * elements / samples + microBatch * elements;
  }

  std::optional<double> counted; ///< targets of the step
  std::uint64_t seed;
  std::int64_t first, samples;
  int microBatches;
  std::int64_t targets, limit;
};

/// Returns the data of a step whose first sample is number `firstSample` of the
/// run, counted from 0.
DrawnData drawnDataFrom(const Plan &plan, std::uint64_t seed,
                        std::int64_t firstSample);
/// Returns the data of step `step`, from 1, of a run with constant global
/// batch.
DrawnData drawnDataOf(const Plan &plan, std::uint64_t seed, std::int64_t step);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
