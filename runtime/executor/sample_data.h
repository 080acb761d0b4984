//===- sample_data.h - Samples as the inputs of a step ----------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H
#define MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H

#include <memory>

#include "runtime/data/step_samples.h"
#include "runtime/executor/step_data.h"

namespace mtplan::runtime {

/// What was read for a step, all replicas' samples: micro-batch m of b samples
/// has samples m b to (m + 1) b - 1 of it.
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

/// How a plan's inputs are made of samples, by their names and limits. Throws
/// std::invalid_argument, which names the input, if it has one that no text
/// gives.
Objective objectiveOf(const Plan &plan, std::uint64_t seed);

/// Tokens that a plan's model knows; 0: it is not trained on tokens.
std::int64_t vocabularyOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H
