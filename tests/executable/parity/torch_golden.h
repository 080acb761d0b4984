//===- torch_golden.h - A training run of PyTorch ---------------*- C++ -*-===//
//
// tests/parity holds the model, the training options and the results, and
// describes how they were made. These functions read them and repeat the
// training with a plan.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EXECUTABLE_PARITY_TORCH_GOLDEN_H
#define MTPLAN_TESTS_EXECUTABLE_PARITY_TORCH_GOLDEN_H

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/step_samples.h"
#include "runtime/executor/train.h"
#include "tests/executable/run_plan.h"

namespace mtplan {

/// Holds compared numbers by name: "loss" and others with one number per step;
/// "gradient h.0.ln_1.bias" and "final h.0.ln_1.bias" with one number per
/// element.
using Numbers = std::map<std::string, std::vector<double>>;

/// Holds a training run of PyTorch: its model, options, samples and results.
struct Golden {
  std::string model; ///< path of the model's configuration
  std::int64_t globalBatch = 0, sequence = 0;
  runtime::TrainOptions how;
  std::vector<std::shared_ptr<const runtime::StepSamples>> samples; ///< by step
  /// Holds image patches by step; empty for models of tokens.
  std::vector<std::vector<double>> patches;
  Numbers initial; ///< values of the parameters before step 1, by label
  Numbers numbers;
};

/// Reads a training run of PyTorch from tests/parity by its model, such as
/// "gpt2".
Golden readGolden(const std::string &name);

/// Holds a tensor of a weights file.
struct FileTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> elements;
};

/// Holds one training step of a Transformers model, and the tensors of its
/// weights file.
struct TransformersGolden {
  Golden golden; ///< the step, without initial values
  std::map<std::string, FileTensor> tensors;
};

/// Reads the step of a Transformers model from tests/parity: "gpt2", "gptj",
/// "llama", "mistral", "qwen2" or "bert".
TransformersGolden readTransformersGolden(const std::string &name);

/// Compiles the golden's model like `mtplan -o` with `flags`, but in
/// `precision`. Fails the test and returns none if the compilation fails.
std::optional<runtime::Plan> planned(const Golden &golden,
                                     const std::vector<std::string> &flags,
                                     runtime::ElementType precision);

/// Holds the results of a plan that starts from the golden's initial values.
struct TorchRun {
  Numbers numbers;
  std::vector<std::string> faults; ///< tensors whose replicas differ
};

/// Trains with one thread per rank.
/// \param tolerance  allowed difference between replicas
TorchRun train(const runtime::Plan &plan, const Golden &golden,
               MakeBackend makeBackend, double tolerance);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_PARITY_TORCH_GOLDEN_H
