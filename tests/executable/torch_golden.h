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
