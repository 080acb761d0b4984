//===- step_test.cpp - Training steps on one rank -------------------------===//

#include <cmath>
#include <numeric>

#include "interpret_testing.h"

namespace mtplan::ir {
namespace {

using InterpretStep = InterpretTest;

// The loss is the sum of (x w)^2. The program includes backward and update.
const char *const kSquares = R"(
  mtp.segment @m () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<4x2xf64>
    %w = mtp.parameter "w" : tensor<2x3xf64>
    %y = mtp.einsum "lin" "bi,io->bo" (%x, %w)
        : (tensor<4x2xf64>, tensor<2x3xf64>) -> tensor<4x3xf64>
    %q = mtp.mul "square" (%y, %y) : tensor<4x3xf64>
    %s = mtp.sum "total" (%q) : (tensor<4x3xf64>) -> tensor<f64>
    mtp.accumulate "loss", %s : tensor<f64>
    mtp.backward () {
      %d = mtp.scale "square.dx" (%y) by 2.0 : tensor<4x3xf64>
      %dw = mtp.einsum "lin.dw" "bi,bo->io" (%x, %d)
          : (tensor<4x2xf64>, tensor<4x3xf64>) -> tensor<2x3xf64>
      mtp.accumulate "w", %dw : tensor<2x3xf64>
      mtp.yield
    }
    mtp.yield
  }
)";
const char *const kUpdate = R"(
  mtp.update {
    %g = mtp.accumulated "w" : tensor<2x3xf64>
    mtp.adamw "w", %g {decay} : tensor<2x3xf64>
    %l = mtp.accumulated "loss" : tensor<f64>
    mtp.result "loss", %l : tensor<f64>
  }
)";

double lossOf(const RunResult &result) {
  return result.results.at({"loss", 0}).ranks[0].data[0];
}

TEST_F(InterpretStep, PerturbationsGiveTheGradientAsADifferenceQuotient) {
  const std::string text = std::string(kSquares) + kUpdate;
  const HostTensor gradient = run(text).gradients.at({"w", 0}).ranks[0];
  for (std::int64_t i = 0; i < 6; ++i) {
    RunOptions options;
    options.perturbation = Perturbation{"w", 3, i, 1e-5};
    const double above = lossOf(run(text, options));
    options.perturbation->delta = -1e-5;
    const double below = lossOf(run(text, options));
    EXPECT_NEAR((above - below) / 2e-5, gradient.data[i], 1e-7);
  }
}

TEST_F(InterpretStep, GradientsAreReportedWithoutAnUpdate) {
  const RunResult bare = run(kSquares);
  const RunResult full = run(std::string(kSquares) + kUpdate);
  EXPECT_EQ(lossOf(bare), lossOf(full));
  EXPECT_EQ(bare.results.size(), 1U);
  EXPECT_EQ(bare.gradients.at({"w", 0}).ranks[0].data,
            full.gradients.at({"w", 0}).ranks[0].data);
  // The first update of AdamW moves against the sign of the gradient.
  const HostTensor before = bare.parameters.at({"w", 0}).ranks[0];
  const HostTensor after = full.parameters.at({"w", 0}).ranks[0];
  for (std::size_t i = 0; i < 6; ++i) {
    const double sign =
        bare.gradients.at({"w", 0}).ranks[0].data[i] > 0 ? 1 : -1;
    EXPECT_NEAR(after.data[i], before.data[i] * (1 - 1e-5) - 1e-3 * sign, 1e-9);
  }
}

TEST_F(InterpretStep, MicroBatchesAddUpAndRunsRepeat) {
  RunOptions one, two;
  one.microBatches = 1;
  const double first = lossOf(run(kSquares, one));
  const double both = lossOf(run(kSquares, two));
  EXPECT_GT(both, first);
  EXPECT_EQ(both, lossOf(run(kSquares, two)));
  RunOptions other = two;
  other.seed = 2;
  EXPECT_NE(both, lossOf(run(kSquares, other)));
  other = two;
  other.step = 2;
  EXPECT_NE(both, lossOf(run(kSquares, other)));
}

TEST_F(InterpretStep, RepeatedLayersHaveTheirOwnParameters) {
  // The program computes x + w3 + w4 + w5 and its gradients.
  const RunResult result = run(R"(
    mtp.segment @in () {
      %x = mtp.parameter "x" : tensor<2xf64>
      mtp.backward (%g: tensor<2xf64>) {
        mtp.accumulate "x", %g : tensor<2xf64>
        mtp.yield
      }
      mtp.yield %x : tensor<2xf64>
    }
    mtp.segment @h repeat 3 first 3 (%x: tensor<2xf64>) {
      %w = mtp.parameter "h.*.w" {init = "zeros"} : tensor<2xf64>
      %y = mtp.add "h.*.add" (%x, %w) : tensor<2xf64>
      mtp.backward (%g: tensor<2xf64>) {
        mtp.accumulate "h.*.w", %g : tensor<2xf64>
        %d = mtp.scale "h.*.add.dx" (%g) by 2.0 : tensor<2xf64>
        mtp.yield %d : tensor<2xf64>
      }
      mtp.yield %y : tensor<2xf64>
    }
    mtp.segment @out (%x: tensor<2xf64>) {
      %c = mtp.parameter "c" {init = "ones"} : tensor<2xf64>
      mtp.accumulate "sum", %x : tensor<2xf64>
      mtp.backward () {
        mtp.yield %c : tensor<2xf64>
      }
      mtp.yield
    }
    mtp.update {
      %f = mtp.accumulated "h.*.w" : tensor<2xf64>
      %s = mtp.accumulated "sum" : tensor<2xf64>
      %z = mtp.scale "zero" (%s) by 0.0 : tensor<2xf64>
      %t = mtp.scale "third" (%f) by 3.0 : tensor<2xf64>
      %u = mtp.add "shared" (%t, %z) : tensor<2xf64>
      mtp.adamw "h.*.w", %u : tensor<2xf64>
      %g = mtp.accumulated "x" : tensor<2xf64>
      mtp.adamw "x", %g : tensor<2xf64>
      mtp.result "sum", %s : tensor<2xf64>
    }
  )");
  const std::string w = "h.*.w";
  ASSERT_EQ(result.gradients.size(), 4U);
  EXPECT_EQ((TensorKey{w, 4}.name()), "h.4.w");
  const auto parameter = [&](const TensorKey &key, std::size_t i) {
    return result.parameters.at(key).ranks[0].data[i];
  };
  EXPECT_NE(parameter({w, 3}, 0), parameter({w, 4}, 0));
  for (std::size_t i = 0; i < 2; ++i) {
    // Two micro-batches run backward through layers 5, 4 and 3.
    const double c = 2 * parameter({"c", 0}, i);
    const auto gradient = [&](const TensorKey &key) {
      return result.gradients.at(key).ranks[0].data[i];
    };
    EXPECT_DOUBLE_EQ(gradient({w, 5}), 3 * c);
    EXPECT_DOUBLE_EQ(gradient({w, 4}), 6 * c);
    EXPECT_DOUBLE_EQ(gradient({w, 3}), 12 * c);
    EXPECT_DOUBLE_EQ(gradient({"x", 0}), 8 * c);
    // The update moved each parameter by the learning rate.
    const double sum = parameter({"x", 0}, i) + parameter({w, 3}, i) +
                       parameter({w, 4}, i) + parameter({w, 5}, i);
    const double moved = parameter({"c", 0}, i) > 0 ? 4e-3 : -4e-3;
    EXPECT_NEAR(result.results.at({"sum", 0}).ranks[0].data[i],
                2 * (sum + moved), 1e-9);
  }
}

TEST_F(InterpretStep, CountIncludesTargetsOfAllMicroBatches) {
  const std::string text = R"(
    mtp.segment @m () {
      %t = mtp.input "targets" dims ["batch", "sequence"] below 1
          : tensor<4x8xi32>
      %c = mtp.input "count" dims [] : tensor<f32>
      mtp.accumulate "targets", %t : tensor<4x8xi32>
      mtp.accumulate "count", %c : tensor<f32>
      mtp.yield
    }
  )";
  RunOptions options;
  options.microBatches = 3;
  const RunResult result = run(text, options);
  // With a bound of 1, targets are 0, or -1 at positions without a target.
  const auto &targets = result.results.at({"targets", 0}).ranks[0].data;
  const double absent = -std::accumulate(targets.begin(), targets.end(), 0.0);
  EXPECT_GT(absent, 0);
  EXPECT_EQ(result.results.at({"count", 0}).ranks[0].data[0],
            3 * (3 * 32 - absent));
}

TEST_F(InterpretStep, ReshardIsTheIdentityOnOneRank) {
  const RunResult result = run(R"(
    module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>} {
      mtp.segment @m () {
        %w = mtp.parameter "w" {layout = #mtp.layout<[["dp"]]>} : tensor<2xf64>
        %r = mtp.reshard %w from <[["dp"]]> to <[[]]> cause "w" : tensor<2xf64>
        mtp.accumulate "r", %r : tensor<2xf64>
        mtp.yield
      }
    }
  )");
  const auto &w = result.parameters.at({"w", 0}).ranks;
  ASSERT_EQ(w.size(), 1U);
  expectNear(result.results.at({"r", 0}).ranks[0],
             {2 * w[0].data[0], 2 * w[0].data[1]});
}

TEST_F(InterpretStep, ErrorsNameTheOperation) {
  const auto contains = [](const std::string &text, const char *part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  context.allowUnregisteredDialects();
  contains(errorOf(R"(mtp.segment @m () {
      %x = "other.op"() : () -> tensor<2xf64>
      mtp.yield })"),
           "cannot be interpreted");
  contains(errorOf(R"(mtp.segment @m () {
      %w = mtp.parameter "w" : tensor<?xf64>
      mtp.yield })"),
           "unknown or no size");
  contains(errorOf(R"(mtp.segment @m () {
      %x = mtp.input "ids" dims ["batch"] : tensor<2xi32>
      mtp.yield })"),
           "no limit");
  contains(errorOf(R"(mtp.segment @m () {
      %c = mtp.input "count" dims [] : tensor<f32>
      mtp.yield })"),
           "without 'targets'");
  contains(errorOf(R"(mtp.segment @m () { mtp.yield }
      mtp.update { %g = mtp.accumulated "w" : tensor<2xf64> })"),
           "to which no operation adds");
  contains(errorOf(R"(module attributes {mtp.partitioned} {
      mtp.segment @m () { mtp.yield } })"),
           "mtp.mesh");
  RunOptions options;
  options.perturbation = Perturbation{"w", 0, 6, 1.0};
  contains(errorOf(kSquares, true, options), "to perturb");
}

// The interpreter verifies first, so that no malformed operation reaches a
// kernel.
TEST_F(InterpretStep, BadShapesAreErrors) {
  EXPECT_FALSE(errorOf(R"(mtp.segment @m () {
      %w = mtp.parameter "w" : tensor<2x3xf64>
      %y = mtp.einsum "l" "ab,bc->ac" (%w, %w)
          : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
      mtp.yield })",
                       /*verify=*/false)
                   .empty());
  EXPECT_FALSE(errorOf(R"(mtp.segment @m () {
      %q = mtp.parameter "q" : tensor<2x3x4xf64>
      %r:2 = mtp.attention "l" (%q, %q, %q) {head_dim = 0 : i64, causal = true,
          scale = 1.0 : f64, rate = 0.0 : f64, mask = "m"}
          : (tensor<2x3x4xf64>, tensor<2x3x4xf64>, tensor<2x3x4xf64>)
          -> (tensor<2x3x4xf64>, tensor<2x3x1xf64>)
      mtp.yield })",
                       /*verify=*/false)
                   .empty());
}

} // namespace
} // namespace mtplan::ir
