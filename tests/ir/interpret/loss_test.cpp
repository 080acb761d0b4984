//===- loss_test.cpp - Cross entropy of a sharded vocabulary --------------===//

#include <cmath>
#include <limits>

#include "interpret_testing.h"

namespace mtplan::ir {
namespace {

using InterpretLoss = InterpretTest;

const double kLog3 = std::log(3.0);
const double kInfinity = std::numeric_limits<double>::infinity();

// These are logits of two classes and one of padding, which must not count.
const HostTensor kLogits = tensor({1, 2, 3}, {0, kLog3, 100, 0, 0, 100});

TEST_F(InterpretLoss, ReductionsLeavePaddingOut) {
  auto maximum = evaluate(R"(%r = mtp.vocab_max "l" (%a) {classes = 2 : i64}
      : (tensor<1x2x3xf64>) -> tensor<1x2xf64>)",
                          {kLogits})[0];
  expectNear(maximum, {kLog3, 0});
  expectNear(evaluate(R"(%r = mtp.vocab_sum_exp "l" (%a, %b)
      {classes = 2 : i64} : (tensor<1x2x3xf64>, tensor<1x2xf64>)
      -> tensor<1x2xf64>)",
                      {kLogits, maximum})[0],
             {4.0 / 3.0, 2});
  expectNear(evaluate(R"(%r = mtp.vocab_pick "l" (%a, %b) :
      (tensor<1x2x3xf64>, tensor<1x2xf64>) -> tensor<1x2xf64>)",
                      {kLogits, tensor({1, 2}, {1, -1})})[0],
             {kLog3, 0});
}

TEST_F(InterpretLoss, AShardOfPaddingIsNeutral) {
  // The rank has classes 2 and 3 of 4, both padding; another has target 1.
  const HostTensor logits = tensor({1, 2}, {50, 60});
  const auto move = [](KernelCall &call) {
    call.inShapes[0].pieces[1] = {2, 4};
  };
  EXPECT_EQ(evaluate(R"(%r = mtp.vocab_max "l" (%a) {classes = 2 : i64}
      : (tensor<1x2xf64>) -> tensor<1xf64>)",
                     {logits}, move)[0]
                .data[0],
            -kInfinity);
  expectNear(evaluate(R"(%r = mtp.vocab_sum_exp "l" (%a, %b)
      {classes = 2 : i64} : (tensor<1x2xf64>, tensor<1xf64>)
      -> tensor<1xf64>)",
                      {logits, tensor({1}, {3})}, move)[0],
             {0});
  expectNear(evaluate(R"(%r = mtp.vocab_pick "l" (%a, %b) :
      (tensor<1x2xf64>, tensor<1xf64>) -> tensor<1xf64>)",
                      {logits, tensor({1}, {1})}, move)[0],
             {0});
  expectNear(evaluate(R"(%r = mtp.vocab_pick "l" (%a, %b) :
      (tensor<1x2xf64>, tensor<1xf64>) -> tensor<1xf64>)",
                      {logits, tensor({1}, {3})}, move)[0],
             {60});
}

TEST_F(InterpretLoss, TokensWithoutTargetDoNotCount) {
  expectNear(
      evaluate(R"(%r = mtp.token_loss "l" (%a, %b, %c, %d, %e) :
      (tensor<1x2xf64>, tensor<1x2xf64>, tensor<1x2xf64>, tensor<1x2xf64>,
       tensor<f64>) -> tensor<f64>)",
               {tensor({1, 2}, {kLog3, 0}), tensor({1, 2}, {4.0 / 3.0, 2}),
                tensor({1, 2}, {kLog3, 0}), tensor({1, 2}, {1, -1}),
                tensor({}, {2})})[0],
      {std::log(4.0 / 3.0) / 2});
}

TEST_F(InterpretLoss, Gradient) {
  const std::string text = R"(%r = mtp.cross_entropy_grad "l"
      (%a, %b, %c, %d, %e) {classes = 2 : i64} : (tensor<1x2x3xf64>,
      tensor<1x2xf64>, tensor<1x2xf64>, tensor<1x2xf64>, tensor<f64>)
      -> tensor<1x2x3xf64>)";
  expectNear(evaluate(text, {kLogits, tensor({1, 2}, {kLog3, 0}),
                             tensor({1, 2}, {4.0 / 3.0, 2}),
                             tensor({1, 2}, {1, -1}), tensor({}, {2})})[0],
             {0.125, -0.125, 0, 0, 0, 0});
}

} // namespace
} // namespace mtplan::ir
