//===- sample_data.h - Samples as inputs of a step --------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H
#define MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H

#include <memory>

#include "runtime/data/step_samples.h"
#include "runtime/executor/step_data.h"

namespace mtplan::runtime {

/// Inputs made of a dataset's samples for all replicas. Micro-batch m of b
/// samples has samples m b to (m + 1) b - 1.
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

/// Returns the training objective, derived from the names and limits of the
/// plan's inputs. Throws std::invalid_argument with the name of an input that
/// cannot be made from text.
Objective objectiveOf(const Plan &plan, std::uint64_t seed);

/// Returns the size of the model's vocabulary; 0 if its inputs are not tokens.
std::int64_t vocabularyOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_EXECUTOR_SAMPLE_DATA_H
