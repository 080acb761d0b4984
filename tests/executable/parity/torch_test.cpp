//===- torch_test.cpp - Plans train like PyTorch --------------------------===//
//
// Trains seven tiny models for ten steps, planned and compiled as a user would,
// with one thread per rank. Compares with PyTorch in float64 (tests/parity):
// learning rate, loss and gradient norm of every step, every gradient of the
// first step, every parameter after the last.
//
//===----------------------------------------------------------------------===//

#include <cmath>

#include <gtest/gtest.h>

#include "tests/executable/parity/torch_golden.h"

namespace mtplan {
namespace {

using runtime::ElementType;

/// Names a layout and holds the flags of its plan.
struct Layout {
  std::string name;
  std::vector<std::string> flags;
};

const std::vector<Layout> &layouts() {
  static const std::vector<Layout> kAll = {
      {"one rank", {"--gpus", "1", "--micro-batch", "8"}},
      {"one rank, four micro-batches", {"--gpus", "1", "--micro-batch", "2"}},
      {"dp 2 tp 2",
       {"--gpus", "4", "--dp", "2", "--tp", "2", "--micro-batch", "2"}},
      {"tp 2, Megatron's splits",
       {"--gpus", "2", "--tp", "2", "--micro-batch", "4", "--splits",
        "column,row,head,vocab"}},
      {"pp 2",
       {"--gpus", "2", "--dp", "1", "--tp", "1", "--pp", "2", "--micro-batch",
        "2"}},
      {"pp 2 tp 2 zero-bubble, all recomputed",
       {"--gpus", "4", "--dp", "1", "--tp", "2", "--pp", "2", "--schedule",
        "zero-bubble", "--recompute", "full", "--micro-batch", "1"}},
      {"cp 2",
       {"--gpus", "2", "--dp", "1", "--tp", "1", "--cp", "2", "--micro-batch",
        "4"}},
      {"zero 1",
       {"--gpus", "2", "--dp", "2", "--tp", "1", "--zero", "1", "--micro-batch",
        "2"}},
      {"zero 3",
       {"--gpus", "4", "--dp", "4", "--tp", "1", "--zero", "3", "--micro-batch",
        "1"}},
  };
  return kAll;
}

double largestOf(const std::vector<double> &numbers) {
  double largest = 0.0;
  for (double number : numbers)
    largest = std::max(largest, std::abs(number));
  return largest;
}

/// Sets tolerances relative to the largest element of a tensor.
struct Bounds {
  double gradients; ///< tolerance of the first step's gradients
  double training;  ///< tolerance of other numbers and final parameters
  /// Says whether key biases are compared after the last step. Softmax cancels
  /// them, so their gradient is rounding noise, which AdamW scales to full
  /// steps.
  bool blind;
};

void expectWithin(const Bounds &bounds, const Golden &golden,
                  const TorchRun &run) {
  EXPECT_EQ(run.faults, std::vector<std::string>());
  EXPECT_EQ(run.numbers.size(), golden.numbers.size());
  const std::string gradient = "gradient ", final = "final ";
  double largestGradient = 0.0;
  for (const auto &[name, expected] : golden.numbers)
    if (name.starts_with(gradient))
      largestGradient = std::max(largestGradient, largestOf(expected));
  auto isBlind = [&](const std::string &label) {
    return largestOf(golden.numbers.at(gradient + label)) <
           1e-12 * largestGradient;
  };
  for (const auto &[name, expected] : golden.numbers) {
    auto found = run.numbers.find(name);
    ASSERT_NE(found, run.numbers.end()) << name;
    ASSERT_EQ(found->second.size(), expected.size()) << name;
    double scale = largestOf(expected);
    if (name.starts_with(gradient) && isBlind(name.substr(gradient.size())))
      scale = largestGradient;
    if (name.starts_with(final) && isBlind(name.substr(final.size())) &&
        !bounds.blind)
      continue;
    double apart = 0.0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      double difference = std::abs(expected[i] - found->second[i]) / scale;
      if (!(difference <= apart))
        apart = std::isfinite(difference) ? difference : HUGE_VAL;
    }
    EXPECT_LE(apart,
              name.starts_with(gradient) ? bounds.gradients : bounds.training)
        << name;
  }
}

std::unique_ptr<runtime::Backend> makeOneThread() {
  return runtime::makeCpuBackend(1);
}

class Torch : public ::testing::TestWithParam<const char *> {
protected:
  void expectEqual(ElementType precision, MakeBackend makeBackend,
                   const Bounds &bounds) {
    Golden golden = readGolden(GetParam());
    for (const Layout &layout : layouts()) {
      SCOPED_TRACE(layout.name);
      auto plan = planned(golden, layout.flags, precision);
      ASSERT_TRUE(plan);
      expectWithin(bounds, golden,
                   train(*plan, golden, makeBackend, bounds.training));
    }
  }
};

TEST_P(Torch, PlainKernels) {
  expectEqual(ElementType::f64, runtime::makeReferenceBackend,
              {1e-8, 1e-8, true});
}

TEST_P(Torch, CpuKernels) {
  expectEqual(ElementType::f64, makeOneThread, {1e-8, 1e-8, true});
}

TEST_P(Torch, CpuKernelsInSinglePrecision) {
  expectEqual(ElementType::f32, makeOneThread, {1e-5, 1e-4, false});
}

INSTANTIATE_TEST_SUITE_P(Models, Torch,
                         ::testing::Values("gpt2", "bert", "llama", "gemma2",
                                           "mixtral", "t5", "vit"),
                         [](const auto &each) {
                           return std::string(each.param);
                         });

} // namespace
} // namespace mtplan
