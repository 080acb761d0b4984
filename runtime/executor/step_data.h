//===- step_data.h - Training data of a step --------------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
#define MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H

#include <memory>
#include <optional>

#include "runtime/backend/kernel.h"
#include "runtime/data/step_samples.h"
#include "runtime/plan/plan.h"

namespace mtplan::runtime {

class StepData {
public:
  virtual ~StepData() = default;
  /// Fills `out`, of the view's shape and type, with the rank's shard of one
  /// micro-batch.
  /// \throws std::runtime_error if there is no such input
  virtual void fill(const Input &input, int microBatch, const TensorView &view,
                    void *out) = 0;
  /// Returns the value of the input "count": the number of targets in the whole
  /// step, at least 1.
  virtual double count() = 0;
};

/// Draws random inputs, which equal the inputs that ir/interpret draws. A
/// sample depends only on the seed and on the sample's number in the run. The
/// batch size does not change a sample.
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
  /// Returns the index of a micro-batch's first element in the input's random
  /// stream.
  std::int64_t indexOf(int microBatch, std::int64_t elements) const {
    return first * elements / samples + microBatch * elements;
  }

  std::optional<double> counted;
  std::uint64_t seed;
  std::int64_t first, samples;
  int microBatches;
  std::int64_t targets, limit;
};

/// \param firstSample  number of the step's first sample in the run, from 0
DrawnData drawnDataFrom(const Plan &plan, std::uint64_t seed,
                        std::int64_t firstSample);
/// Returns the data of step `step`, counted from 1. Every step of the run must
/// have the plan's global batch.
DrawnData drawnDataOf(const Plan &plan, std::uint64_t seed, std::int64_t step);

/// Calls visit(local, global) for every element of the shard, in row-major
/// order, with its index in the shard and in the global tensor.
template <typename Visit>
void forEachElement(const TensorView &view, Visit visit) {
  const std::size_t rank = view.shape.size();
  std::vector<std::int64_t> index(rank, 0);
  const std::int64_t elements = view.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t global = 0;
    for (std::size_t d = 0; d < rank; ++d)
      global =
          global * view.pieces[d].global + view.pieces[d].offset + index[d];
    visit(i, global);
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < view.shape[d])
        break;
      index[d] = 0;
    }
  }
}

/// Takes the inputs of a step from a dataset's samples. The samples cover all
/// replicas. If a micro-batch has b samples, micro-batch m has samples m * b to
/// (m + 1) * b - 1.
class SampleData : public StepData {
public:
  explicit SampleData(std::shared_ptr<const StepSamples> theSamples)
      : samples(std::move(theSamples)) {}
  void fill(const Input &input, int microBatch, const TensorView &view,
            void *out) override;
  double count() override;

private:
  std::shared_ptr<const StepSamples> samples;
};

/// Derives the training objective from the names and limits of the plan's
/// inputs.
/// \throws std::invalid_argument with the name of an input that tokens cannot
/// provide
Objective objectiveOf(const Plan &plan, std::uint64_t seed);

/// Returns the vocabulary's size; 0 if the model's inputs are not tokens.
std::int64_t vocabularyOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_STEP_DATA_H
