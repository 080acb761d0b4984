//===- sample_data.h - Samples as inputs of a step --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H
#define MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H

#include <memory>

#include "runtime/data/step_samples.h"
#include "runtime/executor/step_data.h"

namespace mtplan::runtime {

/// The samples of a step, of all replicas: micro-batch m of b samples has
/// samples m b to (m + 1) b - 1.
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

/// Returns how a plan's inputs are made of samples, by their names and limits.
/// Throws std::invalid_argument with the name of an input that no text
/// provides.
Objective objectiveOf(const Plan &plan, std::uint64_t seed);

/// Returns the vocabulary of a plan's model; 0 if it is not trained on tokens.
std::int64_t vocabularyOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H
