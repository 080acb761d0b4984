//===- kernels_test.cpp - Linear, pointwise and norm kernels --------------===//

#include <cmath>

#include "interpret_testing.h"

namespace mtplan::ir {
namespace {

using InterpretKernels = InterpretTest;

TEST_F(InterpretKernels, EinsumAddsItsBiasToEveryRow) {
  auto result = evaluate(
      R"(%r = mtp.einsum "l" "bi,io->bo" (%a, %b, %c) : (tensor<2x2xf64>,
           tensor<2x2xf64>, tensor<2xf64>) -> tensor<2x2xf64>)",
      {tensor({2, 2}, {1, 2, 3, 4}), tensor({2, 2}, {1, 10, 100, 1000}),
       tensor({2}, {0.5, 0.25})});
  expectNear(result[0], {201.5, 2010.25, 403.5, 4030.25});
}

TEST_F(InterpretKernels, EinsumFollowsLettersNotPositions) {
  auto result = evaluate(
      R"(%r = mtp.einsum "l" "ab,cb->ca" (%a, %b) : (tensor<2x2xf64>,
           tensor<1x2xf64>) -> tensor<1x2xf64>)",
      {tensor({2, 2}, {1, 2, 3, 4}), tensor({1, 2}, {10, 100})});
  expectNear(result[0], {210, 430});
}

TEST_F(InterpretKernels, EinsumSumsOverSeveralLetters) {
  // A weight's gradient sums over samples and positions.
  auto result = evaluate(
      R"(%r = mtp.einsum "l" "bsi,bso->io" (%a, %b) : (tensor<2x2x1xf64>,
           tensor<2x2x2xf64>) -> tensor<1x2xf64>)",
      {tensor({2, 2, 1}, {1, 2, 3, 4}),
       tensor({2, 2, 2}, {1, 0, 10, 0, 100, 0, 1000, 5})});
  expectNear(result[0], {1 + 20 + 300 + 4000, 20});
}

TEST_F(InterpretKernels, SumKeepsTrailingDimensions) {
  auto result = evaluate(
      R"(%r = mtp.sum "l" (%a) : (tensor<2x2x2xf64>) -> tensor<2xf64>)",
      {tensor({2, 2, 2}, {1, 2, 10, 20, 100, 200, 1000, 2000})});
  expectNear(result[0], {1111, 2222});
  result = evaluate(R"(%r = mtp.sum "l" (%a) : (tensor<3xf64>) -> tensor<f64>)",
                    {tensor({3}, {1, 10, 100})});
  expectNear(result[0], {111});
}

TEST_F(InterpretKernels, EmbeddingGivesZerosOutsideItsRows) {
  // The rank has rows 2 to 4 of a table of 6.
  auto result = evaluate(
      R"(%r = mtp.embedding "l" (%a, %b) : (tensor<1x4xf64>, tensor<3x2xf64>)
           -> tensor<1x4x2xf64>)",
      {tensor({1, 4}, {2, 5, 4, 1}), tensor({3, 2}, {1, 2, 3, 4, 5, 6})},
      [](KernelCall &call) {
        call.inShapes[1].pieces[0] = {2, 6};
      });
  expectNear(result[0], {1, 2, 0, 0, 5, 6, 0, 0});
}

TEST_F(InterpretKernels, EmbeddingGradAddsEqualIdsUp) {
  auto result = evaluate(
      R"(%r = mtp.embedding_grad "l" (%a, %b) : (tensor<1x4xf64>,
           tensor<1x4x1xf64>) -> tensor<3x1xf64>)",
      {tensor({1, 4}, {2, 4, 2, 0}), tensor({1, 4, 1}, {1, 10, 100, 1000})},
      [](KernelCall &call) {
        call.outShapes[0].pieces[0] = {2, 6};
      });
  expectNear(result[0], {101, 0, 10});
}

TEST_F(InterpretKernels, ShardedPositionsReadTheirRows) {
  const std::string text =
      R"(%r = mtp.position_embedding "l" (%a, %b) : (tensor<1x2x1xf64>,
           tensor<ROWSx1xf64>) -> tensor<1x2x1xf64>)";
  const auto of = [&](const std::string &rows) {
    std::string copy = text;
    return copy.replace(copy.find("ROWS"), 4, rows);
  };
  const HostTensor input = tensor({1, 2, 1}, {10, 20});
  // In a longer table, positions begin at the first row.
  expectNear(evaluate(of("4"), {input, tensor({4, 1}, {1, 2, 3, 4})})[0],
             {11, 22});
  // The rank has positions 2 and 3; the table is replicated.
  expectNear(evaluate(of("4"), {input, tensor({4, 1}, {1, 2, 3, 4})},
                      [](KernelCall &call) {
                        call.inShapes[0].pieces[1] = {2, 4};
                      })[0],
             {13, 24});
  // The rank has positions 2 and 3; the table is sharded alike.
  expectNear(evaluate(of("2"), {input, tensor({2, 1}, {3, 4})},
                      [](KernelCall &call) {
                        call.inShapes[0].pieces[1] = {2, 4};
                        call.inShapes[1].pieces[0] = {2, 4};
                      })[0],
             {13, 24});
}

TEST_F(InterpretKernels, PositionGradSumsSamplesAndLeavesLaterRowsZero) {
  auto result = evaluate(
      R"(%r = mtp.position_embedding_grad "l" (%a) : (tensor<2x2x1xf64>)
           -> tensor<3x1xf64>)",
      {tensor({2, 2, 1}, {1, 10, 100, 1000})});
  expectNear(result[0], {101, 1010, 0});
}

// Holds an activation's value and derivative at 1, from tables.
struct ActivationCase {
  const char *kind;
  double value, slope;
};

TEST_F(InterpretKernels, ActivationsAndTheirSlopes) {
  const ActivationCase cases[] = {
      {"gelu", 0.8413447460685429, 1.0833154705876863},
      {"gelu_tanh", 0.8411919906082768, 1.0829640838457826},
      {"silu", 0.7310585786300049, 0.9276705118714866},
      {"relu", 1.0, 1.0},
      {"tanh", 0.7615941559557649, 0.4199743416140261},
      {"sigmoid", 0.7310585786300049, 0.19661193324148185}};
  for (const ActivationCase &c : cases) {
    SCOPED_TRACE(c.kind);
    const std::string kind = c.kind;
    auto value = [&](double x) {
      return evaluate("%r = mtp.activation \"l\" " + kind +
                          " (%a) : tensor<1xf64>",
                      {tensor({1}, {x})})[0]
          .data[0];
    };
    auto slope = [&](double x, double gradient) {
      return evaluate("%r = mtp.activation_grad \"l\" " + kind +
                          " (%a, %b) : tensor<1xf64>",
                      {tensor({1}, {x}), tensor({1}, {gradient})})[0]
          .data[0];
    };
    EXPECT_NEAR(value(1), c.value, 1e-9);
    EXPECT_NEAR(slope(1, 10), 10 * c.slope, 1e-7);
    for (double x : {-2.0, -0.3, 0.4, 1.7})
      EXPECT_NEAR(slope(x, 1), (value(x + 1e-5) - value(x - 1e-5)) / 2e-5,
                  1e-8);
  }
}

TEST_F(InterpretKernels, Swiglu) {
  const HostTensor gate = tensor({1}, {1}), up = tensor({1}, {3});
  expectNear(evaluate(R"(%r = mtp.swiglu "l" (%a, %b) : tensor<1xf64>)",
                      {gate, up})[0],
             {2.1931757358900147});
  auto grads =
      evaluate(R"(%r:2 = mtp.swiglu_grad "l" (%a, %b, %c) : tensor<1xf64>)",
               {gate, up, tensor({1}, {2})});
  expectNear(grads[0], {5.5660230712289196});
  expectNear(grads[1], {1.4621171572600098});
}

TEST_F(InterpretKernels, Arithmetic) {
  const HostTensor a = tensor({2}, {1, 2}), b = tensor({2}, {10, 30});
  expectNear(
      evaluate(R"(%r = mtp.add "l" (%a, %b) : tensor<2xf64>)", {a, b})[0],
      {11, 32});
  expectNear(
      evaluate(R"(%r = mtp.mul "l" (%a, %b) : tensor<2xf64>)", {a, b})[0],
      {10, 60});
  expectNear(
      evaluate(R"(%r = mtp.scale "l" (%a) by 3.0 : tensor<2xf64>)", {a})[0],
      {3, 6});
}

TEST_F(InterpretKernels, DropoutOfAShardIsTheShardOfTheDropout) {
  const auto text = [](const char *type) {
    return std::string(R"(%r = mtp.dropout "l" (%a)
        {rate = 0.5 : f64, mask = "m"} : )") +
           type;
  };
  const auto whole =
      evaluate(text("tensor<4x8xf64>"),
               {tensor({4, 8}, std::vector<double>(32, 1.0))})[0];
  // The shard has rows 2 and 3 and columns 4 to 7.
  const auto piece = evaluate(text("tensor<2x4xf64>"),
                              {tensor({2, 4}, std::vector<double>(8, 1.0))},
                              [](KernelCall &call) {
                                call.outShapes[0].pieces = {{2, 4}, {4, 8}};
                              })[0];
  double sum = 0;
  for (int row = 0; row < 2; ++row)
    for (int column = 0; column < 4; ++column) {
      EXPECT_EQ(piece.data[row * 4 + column],
                whole.data[(row + 2) * 8 + column + 4]);
      sum += piece.data[row * 4 + column];
    }
  EXPECT_GT(sum, 0);
  EXPECT_LT(sum, 16);
}

TEST_F(InterpretKernels, LayerNorm) {
  // The row has mean 2 and variance 1; an epsilon of 3 makes the divisor 2.
  const HostTensor row = tensor({1, 2}, {1, 3}), gamma = tensor({2}, {2, 3});
  expectNear(evaluate(R"(%r = mtp.layer_norm "l" (%a, %b, %c)
      {epsilon = 3.0 : f64} : (tensor<1x2xf64>, tensor<2xf64>, tensor<2xf64>)
      -> tensor<1x2xf64>)",
                      {row, gamma, tensor({2}, {10, 20})})[0],
             {9, 21.5});
  // The first element is -2 t / sqrt(t^2 + 3), where t is half the difference.
  auto grads = evaluate(R"(%r:3 = mtp.layer_norm_grad "l" (%a, %b, %c)
      {epsilon = 3.0 : f64} : (tensor<1x2xf64>, tensor<2xf64>, tensor<1x2xf64>)
      -> (tensor<1x2xf64>, tensor<2xf64>, tensor<2xf64>))",
                        {row, gamma, tensor({1, 2}, {1, 0})});
  expectNear(grads[0], {0.375, -0.375});
  expectNear(grads[1], {-0.5, 0});
  expectNear(grads[2], {1, 0});
}

TEST_F(InterpretKernels, RmsNorm) {
  // The root mean square is 5.
  const HostTensor row = tensor({1, 2}, {1, 7}), gamma = tensor({2}, {10, 100});
  expectNear(evaluate(R"(%r = mtp.rms_norm "l" (%a, %b)
      {epsilon = 0.0 : f64} : (tensor<1x2xf64>, tensor<2xf64>)
      -> tensor<1x2xf64>)",
                      {row, gamma})[0],
             {2, 140});
  auto grads = evaluate(R"(%r:2 = mtp.rms_norm_grad "l" (%a, %b, %c)
      {epsilon = 0.0 : f64} : (tensor<1x2xf64>, tensor<2xf64>, tensor<1x2xf64>)
      -> (tensor<1x2xf64>, tensor<2xf64>))",
                        {row, gamma, tensor({1, 2}, {1, 0})});
  expectNear(grads[0], {1.96, -0.28});
  expectNear(grads[1], {0.2, 0});
}

TEST_F(InterpretKernels, Softmax) {
  expectNear(evaluate(R"(%r = mtp.softmax "l" (%a) : tensor<2x2xf64>)",
                      {tensor({2, 2}, {0, std::log(3), 1000, 1000})})[0],
             {0.25, 0.75, 0.5, 0.5});
  expectNear(evaluate(R"(%r = mtp.softmax_grad "l" (%a, %b) : tensor<2xf64>)",
                      {tensor({2}, {0.25, 0.75}), tensor({2}, {1, 0})})[0],
             {0.1875, -0.1875});
}

} // namespace
} // namespace mtplan::ir
