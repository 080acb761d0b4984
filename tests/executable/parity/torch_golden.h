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

/// Compared numbers by name: "loss" and the like with one number per step,
/// "gradient h.0.ln_1.bias" and "final h.0.ln_1.bias" with one per element.
using Numbers = std::map<std::string, std::vector<double>>;

struct Golden {
  std::string model; ///< path of its configuration
  std::int64_t globalBatch = 0, sequence = 0;
  runtime::TrainOptions how;
  std::vector<std::shared_ptr<const runtime::StepSamples>> samples; ///< by step
  /// by label
  std::vector<std::vector<double>> patches;
  /// Reads a golden of tests/parity: "gpt2", "bert" or "llama".
  Numbers initial;
  Numbers numbers;
};

/// A tensor of a file.
Golden readGolden(const std::string &name);

/// A model of Transformers, one step of it, and the tensors of its file.
struct FileTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> elements;
};

/// without initial values
struct TransformersGolden {
  /// Reads a golden of tests/parity: "gpt2", "gptj", "llama", "mistral",
  /// "qwen2" or "bert".
  Golden golden;
  std::map<std::string, FileTensor> tensors;
};

/// Compiles like `mtplan -o` with `flags`, but in another precision; returns
/// none, after a failure of the test, if that is impossible.
TransformersGolden readTransformersGolden(const std::string &name);

/// The result of a plan from the same start.
std::optional<runtime::Plan> planned(const Golden &golden,
                                     const std::vector<std::string> &flags,
                                     runtime::ElementType precision);

/// where ranks hold different values
struct TorchRun {
  Numbers numbers;
  /// Trains with one thread per rank. \n\param tolerance  between ranks.
  std::vector<std::string> faults;
};

/// Trains with one thread for each rank.
/// \param tolerance  allowed difference between replicas
TorchRun train(const runtime::Plan &plan, const Golden &golden,
               MakeBackend makeBackend, double tolerance);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_PARITY_TORCH_GOLDEN_H
