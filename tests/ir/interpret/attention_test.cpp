//===- attention_test.cpp - Attention and rotary positions ----------------===//

#include <cmath>

#include "runtime/backend/relative_position.h"
#include "runtime/reference/kernels.h"

#include "interpret_testing.h"

namespace mtplan::ir {

using runtime::reference::relativeBucket;
namespace {

using InterpretAttention = InterpretTest;

std::string attention(const std::string &attributes, const std::string &q,
                      const std::string &k, const std::string &lse) {
  return "%r:2 = mtp.attention \"l\" (%a, %b, %c) {" + attributes +
         "} : (tensor<" + q + ">, tensor<" + k + ">, tensor<" + k +
         ">) -> (tensor<" + q + ">, tensor<" + lse + ">)";
}

std::string attentionGrad(const std::string &attributes, const std::string &q,
                          const std::string &k, const std::string &lse) {
  return "%r:3 = mtp.attention_grad \"l\" (%a, %b, %c, %d, %e, %f) {" +
         attributes + "} : (tensor<" + q + ">, tensor<" + k + ">, tensor<" + k +
         ">, tensor<" + q + ">, tensor<" + lse + ">, tensor<" + q +
         ">) -> (tensor<" + q + ">, tensor<" + k + ">, tensor<" + k + ">)";
}

std::string attributes(int headDim, bool causal, double rate = 0.0) {
  return "head_dim = " + std::to_string(headDim) +
         " : i64, causal = " + (causal ? "true" : "false") +
         ", scale = 1.0 : f64, rate = " + std::to_string(rate) +
         " : f64, mask = \"m\"";
}

const double kLog3 = std::log(3.0);

TEST_F(InterpretAttention, WeighsValuesByTheSoftmaxOfScores) {
  // Scores of 0 and log 3 give weights of 1/4 and 3/4.
  auto result = evaluate(
      attention(attributes(1, false), "1x1x1xf64", "1x2x1xf64", "1x1x1xf64"),
      {tensor({1, 1, 1}, {kLog3}), tensor({1, 2, 1}, {0, 1}),
       tensor({1, 2, 1}, {4, 8})});
  expectNear(result[0], {7});
  expectNear(result[1], {std::log(4.0)});
}

// The pairs are (distance, row) for 32 rows and a maximum distance of 128, as
// Hugging Face's _relative_position_bucket computes them.
TEST(RelativePosition, RowsAreThoseOfT5) {
  const std::pair<int, int> both[] = {
      {0, 0},     {-1, 1},   {-7, 7},   {-8, 8},   {-11, 8},  {-12, 9},
      {-15, 9},   {-16, 10}, {-31, 11}, {-32, 12}, {-64, 14}, {-127, 15},
      {-500, 15}, {1, 17},   {8, 24},   {16, 26},  {128, 31}, {9000, 31}};
  for (auto [distance, row] : both)
    EXPECT_EQ(relativeBucket(distance, 32, 128, true), row) << distance;
  const std::pair<int, int> past[] = {
      {0, 0},    {3, 0},    {-1, 1},   {-15, 15},  {-16, 16}, {-18, 16},
      {-19, 17}, {-32, 21}, {-64, 26}, {-127, 31}, {-900, 31}};
  for (auto [distance, row] : past)
    EXPECT_EQ(relativeBucket(distance, 32, 128, false), row) << distance;
}

// The runtime has its own copy of the function, because backends share no code
// with the reference kernels that judge them.
TEST(RelativePosition, IsTheSameInTheRuntime) {
  for (int rows : {4, 8, 32})
    for (int farthest : {2, 16, 128})
      for (bool both : {false, true})
        for (int distance = -300; distance <= 300; ++distance)
          ASSERT_EQ(runtime::relativeBucket(distance, rows, farthest, both),
                    relativeBucket(distance, rows, farthest, both))
              << distance << " of " << farthest << " in " << rows;
}

TEST_F(InterpretAttention, BiasesAreAddedByDistance) {
  // The rank has position 2 of 4. Rows are for distances 0, 1, 2 and more.
  auto result = evaluate(
      "%r:2 = mtp.attention \"l\" (%a, %b, %c, %d) {max_distance = 3 : i64, " +
          attributes(1, true) +
          "} : (tensor<1x1x1xf64>, tensor<1x4x1xf64>, tensor<1x4x1xf64>, "
          "tensor<4x1xf64>) -> (tensor<1x1x1xf64>, tensor<1x1x1xf64>)",
      {tensor({1, 1, 1}, {0}), tensor({1, 4, 1}, {0, 0, 0, 0}),
       tensor({1, 4, 1}, {1, 10, 100, 1000}),
       tensor({4, 1}, {0, kLog3, std::log(4.0), 9})},
      [](KernelCall &call) {
        call.inShapes[0].pieces[1] = {2, 4};
      });
  // The weights are 4/8, 3/8 and 1/8.
  expectNear(result[0], {0.5 + 3.75 + 12.5});
  expectNear(result[1], {std::log(8.0)});
}

TEST_F(InterpretAttention, CausalRowsSeeThePast) {
  // Equal scores give plain means.
  const auto text =
      attention(attributes(1, true), "1x2x1xf64", "1x4x1xf64", "1x2x1xf64");
  const std::vector<HostTensor> operands = {tensor({1, 2, 1}, {0, 0}),
                                            tensor({1, 4, 1}, {5, 6, 7, 8}),
                                            tensor({1, 4, 1}, {1, 3, 8, 0})};
  auto result = evaluate(text, operands);
  expectNear(result[0], {1, 2});
  expectNear(result[1], {0, std::log(2.0)});
  // The rank has queries 2 and 3 of 4.
  result = evaluate(text, operands, [](KernelCall &call) {
    call.inShapes[0].pieces[1] = {2, 4};
  });
  expectNear(result[0], {4, 3});
}

TEST_F(InterpretAttention, ConsecutiveHeadsShareKeysAndValues) {
  // There is one key, so each of four heads returns its key/value head's value.
  auto result = evaluate(
      attention(attributes(1, false), "1x1x4xf64", "1x1x2xf64", "1x1x4xf64"),
      {tensor({1, 1, 4}, {1, 2, 3, 4}), tensor({1, 1, 2}, {1, 10}),
       tensor({1, 1, 2}, {5, 6})});
  expectNear(result[0], {5, 5, 6, 6});
  expectNear(result[1], {1, 2, 30, 40});
}

TEST_F(InterpretAttention, Gradients) {
  // Probabilities are 1/4 and 3/4, the output 7, score gradients -3/4 and 3/4.
  auto grads =
      evaluate(attentionGrad(attributes(1, false), "1x1x1xf64", "1x2x1xf64",
                             "1x1x1xf64"),
               {tensor({1, 1, 1}, {kLog3}), tensor({1, 2, 1}, {0, 1}),
                tensor({1, 2, 1}, {4, 8}), tensor({1, 1, 1}, {7}),
                tensor({1, 1, 1}, {std::log(4.0)}), tensor({1, 1, 1}, {1})});
  expectNear(grads[0], {0.75});
  expectNear(grads[1], {-0.75 * kLog3, 0.75 * kLog3});
  expectNear(grads[2], {0.25, 0.75});
}

// The case has two samples, two heads on one key/value head, a causal mask and
// dropout.
TEST_F(InterpretAttention, GradientsAgreeWithDifferenceQuotients) {
  const std::string q = "2x3x4xf64", k = "2x3x2xf64", lse = "2x3x2xf64";
  const std::string how = attributes(2, true, 0.4);
  const auto fill = [](std::vector<std::int64_t> shape, int salt) {
    HostTensor result(std::move(shape));
    for (std::size_t i = 0; i < result.data.size(); ++i)
      result.data[i] = std::sin(1.7 * static_cast<double>(i) + salt);
    return result;
  };
  std::vector<HostTensor> inputs = {fill({2, 3, 4}, 1), fill({2, 3, 2}, 2),
                                    fill({2, 3, 2}, 3)};
  const HostTensor weights = fill({2, 3, 4}, 4);
  const auto loss = [&] {
    const HostTensor out = evaluate(attention(how, q, k, lse), inputs)[0];
    double sum = 0;
    for (std::size_t i = 0; i < out.data.size(); ++i)
      sum += out.data[i] * weights.data[i];
    return sum;
  };
  const auto forward = evaluate(attention(how, q, k, lse), inputs);
  const auto grads = evaluate(
      attentionGrad(how, q, k, lse),
      {inputs[0], inputs[1], inputs[2], forward[0], forward[1], weights});
  for (std::size_t t = 0; t < 3; ++t)
    for (std::size_t i = 0; i < inputs[t].data.size(); ++i) {
      const double kept = inputs[t].data[i];
      inputs[t].data[i] = kept + 1e-5;
      const double above = loss();
      inputs[t].data[i] = kept - 1e-5;
      const double below = loss();
      inputs[t].data[i] = kept;
      EXPECT_NEAR(grads[t].data[i], (above - below) / 2e-5, 1e-8)
          << "operand " << t << " element " << i;
    }
}

TEST_F(InterpretAttention, RopeRotatesTheFirstFeaturesOfAHead) {
  // Position 1 rotates the first pair by 1 and, with theta 4 and two pairs,
  // the second by 1/2.
  const double c1 = 0.5403023058681398, s1 = 0.8414709848078965;
  const double c2 = 0.8775825618903728, s2 = 0.4794255386042030;
  const auto rope = [&](const std::string &rest, std::vector<double> head,
                        std::int64_t position) {
    return evaluate("%r = mtp.rope \"l\" (%a) {head_dim = 4 : i64, theta = 4.0 "
                    ": f64, " +
                        rest + "} : tensor<1x1x4xf64>",
                    {tensor({1, 1, 4}, std::move(head))},
                    [&](KernelCall &call) {
                      call.inShapes[0].pieces[1] = {position, 8};
                    })[0];
  };
  expectNear(rope("rotary_dim = 4 : i64", {1, 1, 0, 0}, 1), {c1, c2, s1, s2});
  expectNear(rope("rotary_dim = 4 : i64, interleaved", {1, 0, 1, 0}, 1),
             {c1, s1, c2, s2});
  expectNear(rope("rotary_dim = 2 : i64", {1, 0, 5, 6}, 1), {c1, s1, 5, 6});
  expectNear(rope("rotary_dim = 4 : i64", {1, 2, 3, 4}, 0), {1, 2, 3, 4});
  expectNear(rope("rotary_dim = 4 : i64, inverse", {c1, c2, s1, s2}, 1),
             {1, 1, 0, 0});
}

TEST_F(InterpretAttention, RopeCountsPositionsBeforeHeads) {
  // Two heads have two positions, of which only the second is rotated.
  auto result = evaluate(
      R"(%r = mtp.rope "l" (%a) {head_dim = 2 : i64, rotary_dim = 2 : i64,
           theta = 1.0 : f64} : tensor<1x2x4xf64>)",
      {tensor({1, 2, 4}, {1, 0, 1, 0, 1, 0, 1, 0})});
  const double c = std::cos(1.0), s = std::sin(1.0);
  expectNear(result[0], {1, 0, 1, 0, c, s, c, s});
}

} // namespace
} // namespace mtplan::ir
