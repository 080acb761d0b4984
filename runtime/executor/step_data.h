//===- step_data.h - Training data of a step --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
#define MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H

#include <optional>

#include "runtime/backend/kernel.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// The inputs of one step. Every rank asks for its shards.
class StepData {
public:
  virtual ~StepData() = default;
  /// Fills `out`, of `view`'s shape and type, with the rank's shard of one
  /// micro-batch. Throws std::runtime_error if there is no such input.
  virtual void fill(const Input &input, int microBatch, const TensorView &view,
                    void *out) = 0;
  /// Returns the value of the input "count": targets in the whole step, at
  /// least 1.
  virtual double count() = 0;
};

/// Draws inputs instead of reading them, as ir/interpret does. A sample depends
/// on the seed and its number in the run only: neither the size of a
/// micro-batch nor that of a step changes it.
class DrawnData : public StepData {
public:
  /// \param theFirst      number of the step's first sample, from 0
  /// \param theSamples    of a micro-batch, all replicas
  /// \param wholeTargets  elements of "targets" in a micro-batch, all ranks,
  ///                      from which "count" follows; 0: there are none
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
  /// Returns the index in its stream of a micro-batch's first element.
  std::int64_t indexOf(int microBatch, std::int64_t elements) const {
    return first * elements / samples + microBatch * elements;
  }

  std::optional<double> counted; ///< targets of the step
  std::uint64_t seed;
  std::int64_t first, samples;
  int microBatches;
  std::int64_t targets, limit;
};

/// Draws a step that begins with this sample of the run, from 0.
DrawnData drawnDataFrom(const Plan &plan, std::uint64_t seed,
                        std::int64_t firstSample);
/// Draws a step of a run whose global batch never changed; steps count from 1.
DrawnData drawnDataOf(const Plan &plan, std::uint64_t seed, std::int64_t step);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
