//===- torch_golden.h - A training that PyTorch did -------------*- C++ -*-===//
//
// tests/parity has its model, how it was trained and what came out, and says
// how that was made. Here it is read, and done again with a plan.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_EXECUTABLE_TORCH_GOLDEN_H
#define MTPLAN_TESTS_EXECUTABLE_TORCH_GOLDEN_H

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/step_samples.h"
#include "runtime/executor/train.h"
#include "tests/executable/run_plan.h"

namespace mtplan {

/// What is compared, by name: "loss" and the like with a number a step,
/// "gradient h.0.ln_1.bias" and "final h.0.ln_1.bias" with one an element.
using Numbers = std::map<std::string, std::vector<double>>;

struct Golden {
  std::string model; ///< path of its configuration
  std::int64_t globalBatch = 0, sequence = 0;
  runtime::TrainOptions how;
  std::vector<std::shared_ptr<const runtime::StepSamples>> samples; ///< by step
  Numbers initial; ///< by label
  Numbers numbers;
};

/// Of tests/parity: "gpt2", "bert" or "llama".
Golden readGolden(const std::string &name);

/// A tensor of a file.
struct FileTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> elements;
};

/// A model of Transformers, one step of it, and the tensors of its file.
struct TransformersGolden {
  Golden golden; ///< without initial values
  std::map<std::string, FileTensor> tensors;
};

/// Of tests/parity: "gpt2", "gptj", "llama", "mistral", "qwen2" or "bert".
TransformersGolden readTransformersGolden(const std::string &name);

/// As `mtplan -o` compiles what is asked for with `flags`, but in another
/// precision; nothing, after a failure of the test, if it cannot be.
std::optional<runtime::Plan> planned(const Golden &golden,
                                     const std::vector<std::string> &flags,
                                     runtime::ElementType precision);

/// What a plan makes of the same start.
struct TorchRun {
  Numbers numbers;
  std::vector<std::string> faults; ///< where ranks hold different things
};

/// Trains on a thread a rank. \param tolerance  between ranks
TorchRun train(const runtime::Plan &plan, const Golden &golden,
               MakeBackend makeBackend, double tolerance);

} // namespace mtplan

#endif // MTPLAN_TESTS_EXECUTABLE_TORCH_GOLDEN_H
