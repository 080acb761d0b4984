//===- moe_test.cpp - Mixtures of experts ---------------------------------===//

#include <cmath>

#include "interpret_testing.h"

namespace mtplan::ir {

using runtime::Stream;
namespace {

using InterpretMoe = InterpretTest;

//===----------------------------------------------------------------------===//
// Values worked out by hand
//===----------------------------------------------------------------------===//

// These logits have the softmax values 1/8, 2/8 and 5/8.
const HostTensor kEighths =
    tensor({1, 1, 3}, {std::log(1), std::log(2), std::log(5)});

TEST_F(InterpretMoe, GatesAreSoftmaxValuesOfTheChosenExperts) {
  auto result = evaluate(
      R"(%r = mtp.moe_gate "l" (%a) {top_k = 2 : i64} : tensor<1x1x3xf64>)",
      {kEighths});
  expectNear(result[0], {0, 0.25, 0.625});
  result = evaluate(R"(%r = mtp.moe_gate "l" (%a) {top_k = 2 : i64, normalise}
                         : tensor<1x1x3xf64>)",
                    {kEighths});
  expectNear(result[0], {0, 2. / 7, 5. / 7});
}

TEST_F(InterpretMoe, GateGradientsFollowTheSoftmaxThatWasUsed) {
  // Not normalised: the softmax values are p = (1, 2, 5) / 8, and p.g = 25/8
  // for g = (0, 10, 1). The gradient of an expert not chosen counts as 0.
  const HostTensor gradient = tensor({1, 1, 3}, {1000, 10, 1});
  auto result = evaluate(R"(%r = mtp.moe_gate_grad "l" (%a, %b)
                              {top_k = 2 : i64} : tensor<1x1x3xf64>)",
                         {kEighths, gradient});
  expectNear(result[0], {-25. / 64, 2 * 55. / 64, -5 * 17. / 64});
  // Normalised: the gates are w = (0, 2, 5) / 7, and w.g = 25/7.
  result = evaluate(R"(%r = mtp.moe_gate_grad "l" (%a, %b)
                         {top_k = 2 : i64, normalise} : tensor<1x1x3xf64>)",
                    {kEighths, gradient});
  expectNear(result[0], {0, 2 * 45. / 49, -5 * 18. / 49});
}

// By these logits, four tokens choose two of three experts; the last has a tie.
const HostTensor kLogits = tensor({1, 4, 3}, {3, 2, 1, //
                                              3, 1, 2, //
                                              1, 3, 2, //
                                              5, 5, 0});
// These positions in the experts' queues put first choices before second ones.
const std::vector<double> kSlots = {0,  1,  -1, //
                                    1,  -1, 0,  //
                                    -1, 0,  1,  //
                                    2,  2,  -1};

TEST_F(InterpretMoe, QueuesAreSeparateBySampleWithFirstChoicesFirst) {
  HostTensor two({2, 4, 3});
  two.data = kLogits.data;
  two.data.insert(two.data.end(), kLogits.data.begin(), kLogits.data.end());
  auto result = evaluate(R"(%r = mtp.moe_slots "l" (%a) {top_k = 2 : i64}
                              : (tensor<2x4x3xf64>) -> tensor<2x4x3xi32>)",
                         {two});
  std::vector<double> expected = kSlots;
  expected.insert(expected.end(), kSlots.begin(), kSlots.end());
  expectNear(result[0], expected);
}

// The capacity is two tokens per expert, so that the last token is dropped.
TEST_F(InterpretMoe, DispatchDropsTokensBeyondTheCapacity) {
  auto result = evaluate(R"(%r = mtp.moe_dispatch "l" (%a, %b)
      : (tensor<1x4x2xf64>, tensor<1x4x3xf64>) -> tensor<3x1x2x2xf64>)",
                         {tensor({1, 4, 2}, {1, 10, 2, 20, 3, 30, 4, 40}),
                          tensor({1, 4, 3}, kSlots)});
  expectNear(result[0], {1, 10, 2, 20, //
                         3, 30, 1, 10, //
                         2, 20, 3, 30});
}

TEST_F(InterpretMoe, DispatchLeavesUnusedSlotsAtZero) {
  auto result = evaluate(R"(%r = mtp.moe_dispatch "l" (%a, %b)
      : (tensor<1x1x1xf64>, tensor<1x1x2xf64>) -> tensor<2x1x2x1xf64>)",
                         {tensor({1, 1, 1}, {7}), tensor({1, 1, 2}, {-1, 0})});
  expectNear(result[0], {0, 0, 7, 0});
}

const HostTensor kPlaces =
    tensor({3, 1, 2, 1}, {1, 2, /**/ 10, 20, /**/ 100, 200});

TEST_F(InterpretMoe, DispatchGradientsReturnToTokens) {
  auto result = evaluate(R"(%r = mtp.moe_dispatch_grad "l" (%a, %b)
      : (tensor<1x4x3xf64>, tensor<3x1x2x1xf64>) -> tensor<1x4x1xf64>)",
                         {tensor({1, 4, 3}, kSlots), kPlaces});
  expectNear(result[0], {1 + 20, 2 + 100, 10 + 200, 0});
}

const HostTensor kGates =
    tensor({1, 4, 3}, {.5, .25, 0, .5, 0, .5, 0, 1, 2, 9, 9, 0});

TEST_F(InterpretMoe, CombineWeighsByGates) {
  auto result = evaluate(R"(%r = mtp.moe_combine "l" (%a, %b, %c)
      : (tensor<3x1x2x1xf64>, tensor<1x4x3xf64>, tensor<1x4x3xf64>)
      -> tensor<1x4x1xf64>)",
                         {kPlaces, kGates, tensor({1, 4, 3}, kSlots)});
  expectNear(result[0], {.5 + .25 * 20, 1 + 50, 10 + 400, 0});
}

TEST_F(InterpretMoe, CombineGradientsReachExpertsAndGates) {
  auto result = evaluate(R"(%r:2 = mtp.moe_combine_grad "l" (%a, %b, %c, %d)
      : (tensor<3x1x2x1xf64>, tensor<1x4x3xf64>, tensor<1x4x3xf64>,
         tensor<1x4x1xf64>) -> (tensor<3x1x2x1xf64>, tensor<1x4x3xf64>))",
                         {kPlaces, kGates, tensor({1, 4, 3}, kSlots),
                          tensor({1, 4, 1}, {1, 2, 3, 4})});
  expectNear(result[0], {.5, 2 * .5, /**/ 3 * 1, .25, /**/ 2 * .5, 3 * 2});
  expectNear(result[1],
             {1, 20, 0, 2 * 2, 0, 2 * 100, 0, 3 * 10, 3 * 200, 0, 0, 0});
}

const std::string kBalance = R"(%r = mtp.balance_loss "l" (%a, %b)
    {top_k = 1 : i64, coefficient = 0.5 : f64}
    : (tensor<1x4x2xf64>, tensor<f64>) -> tensor<f64>)";

// The loss of Fedus et al. 2021 is 1 for an even load, and the number of
// experts if one expert has all tokens; the coefficient is 0.5.
TEST_F(InterpretMoe, BalanceIsOneAtBestAndTheNumberOfExpertsAtWorst) {
  auto result =
      evaluate(kBalance, {tensor({1, 4, 2}, {1, -1, -1, 1, 1, -1, -1, 1}),
                          tensor({}, {4})});
  expectNear(result[0], {0.5});
  result = evaluate(kBalance, {tensor({1, 4, 2}, {99, 0, 99, 0, 99, 0, 99, 0}),
                               tensor({}, {4})});
  expectNear(result[0], {0.5 * 2});
  // Half of a step's tokens contribute half of the step's mean.
  result = evaluate(kBalance, {tensor({1, 4, 2}, {99, 0, 99, 0, 99, 0, 99, 0}),
                               tensor({}, {8})});
  expectNear(result[0], {0.5});
}

TEST_F(InterpretMoe, BalanceGradientLowersTheLoadedExpert) {
  // Both tokens choose the first of two experts, so the counts are n = (2, 0).
  // With p = (3/4, 1/4), g = 0.5 * 2 / (2 * 2) n = (0.5, 0) is the derivative
  // of the loss by p, and p (g - p.g) = (3/32, -3/32) that by the logits.
  auto result = evaluate(
      R"(%r = mtp.balance_loss_grad "l" (%a, %b)
           {top_k = 1 : i64, coefficient = 0.5 : f64}
           : (tensor<1x2x2xf64>, tensor<f64>) -> tensor<1x2x2xf64>)",
      {tensor({1, 2, 2}, {std::log(3), 0, std::log(3), 0}), tensor({}, {2})});
  expectNear(result[0], {3. / 32, -3. / 32, 3. / 32, -3. / 32});
}

//===----------------------------------------------------------------------===//
// Properties that the factor rules promise
//===----------------------------------------------------------------------===//

struct Promise {
  const char *name, *text;
  std::vector<std::string> splits; ///< factors that may be sharded
  std::vector<std::vector<std::int64_t>> operands;
};

void PrintTo(const Promise &promise, std::ostream *out) {
  *out << promise.name;
}

class MoePromises : public InterpretTest,
                    public ::testing::WithParamInterface<Promise> {
protected:
  /// Returns a half of `tensor` along the dimension of `factor`, or the tensor
  /// if it has no such dimension.
  static HostTensor piece(const HostTensor &tensor, const TensorFactors &dims,
                          int factor, std::int64_t half) {
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (llvm::is_contained(dims[d], factor)) {
        HostTensor cut = tensor;
        cut.shape[d] /= 2;
        cut.data.clear();
        forEachIndex(tensor.shape, [&](std::size_t i, const auto &index) {
          if (index[d] / cut.shape[d] == half)
            cut.data.push_back(tensor.data[i]);
        });
        return cut;
      }
    return tensor;
  }

  /// Returns valid operands: slots as mtp.moe_slots makes them, and random
  /// numbers otherwise.
  std::vector<HostTensor> draw(mlir::Operation *op, int seed) {
    std::vector<HostTensor> operands;
    const Stream stream = Stream::ofParameter(seed, "operands", 0);
    std::int64_t next = 0;
    for (const auto &shape : GetParam().operands) {
      HostTensor tensor(shape);
      for (double &value : tensor.data)
        value = stream.normalAt(next++);
      operands.push_back(std::move(tensor));
    }
    for (auto [i, dims] :
         llvm::enumerate(llvm::cast<ComputeOp>(op).getFactorRule().operands))
      if (isSlots(static_cast<int>(i)))
        operands[i] = evaluate(
            R"(%r = mtp.moe_slots "l" (%a) {top_k = 2 : i64}
                 : (tensor<2x6x4xf64>) -> tensor<2x6x4xi32>)",
            {operands[i]})[0];
      else if (dims.empty())
        operands[i].data = {12};
    return operands;
  }

  static bool isSlots(int operand) {
    const llvm::StringRef name = GetParam().name;
    return operand == (name == "moe_dispatch"        ? 1
                       : name == "moe_dispatch_grad" ? 0
                       : name.contains("combine")    ? 2
                                                     : -1);
  }

  std::vector<HostTensor> runOn(mlir::Operation *op,
                                const std::vector<HostTensor> &operands,
                                int factor) {
    const FactorRule rule = llvm::cast<ComputeOp>(op).getFactorRule();
    std::vector<const HostTensor *> passed;
    for (const HostTensor &operand : operands)
      passed.push_back(&operand);
    KernelCall call = callOf(op, passed);
    for (auto [i, dims] : llvm::enumerate(rule.results)) {
      HostTensor part =
          piece(HostTensor(call.outShapes[i].sizes), dims, factor, 0);
      call.outShapes[i].sizes = std::move(part.shape);
      call.out[i] = std::move(part.data);
    }
    kernelOf(op)(call);
    return takeResults(call);
  }
};

TEST_P(MoePromises, FactorsMayBeShardedAsDeclared) {
  std::vector<HostTensor> shapes;
  for (const auto &shape : GetParam().operands)
    shapes.emplace_back(shape);
  auto module = parseOp(GetParam().text, shapes);
  mlir::Operation *op = firstOp(*module);
  const FactorRule rule = llvm::cast<ComputeOp>(op).getFactorRule();
  const std::vector<HostTensor> operands = draw(op, 3);
  const std::vector<HostTensor> whole = runOn(op, operands, -1);
  std::vector<std::string> splits;
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    if (!factor.divisible)
      continue;
    splits.push_back(factor.name);
    std::vector<std::vector<HostTensor>> halves;
    for (std::int64_t half : {0, 1}) {
      std::vector<HostTensor> pieces;
      for (auto [operand, dims] : llvm::zip_equal(operands, rule.operands))
        pieces.push_back(piece(operand, dims, static_cast<int>(f), half));
      halves.push_back(runOn(op, pieces, static_cast<int>(f)));
    }
    for (std::size_t r = 0; r < whole.size(); ++r) {
      const int wanted = static_cast<int>(f);
      const bool has = llvm::any_of(rule.results[r], [&](const auto &dims) {
        return llvm::is_contained(dims, wanted);
      });
      SCOPED_TRACE(factor.name + " of result " + std::to_string(r));
      if (!has)
        for (std::size_t i = 0; i < halves[0][r].data.size(); ++i)
          halves[0][r].data[i] += halves[1][r].data[i];
      expectNear(halves[0][r],
                 piece(whole[r], rule.results[r], static_cast<int>(f), 0).data);
      if (has)
        expectNear(
            halves[1][r],
            piece(whole[r], rule.results[r], static_cast<int>(f), 1).data);
    }
  }
  EXPECT_EQ(splits, GetParam().splits);
}

TEST_P(MoePromises, LinearGroupsAreLinear) {
  std::vector<HostTensor> shapes;
  for (const auto &shape : GetParam().operands)
    shapes.emplace_back(shape);
  auto module = parseOp(GetParam().text, shapes);
  mlir::Operation *op = firstOp(*module);
  std::vector<HostTensor> one = draw(op, 3);
  for (const auto &group :
       llvm::cast<ComputeOp>(op).getFactorRule().linearGroups) {
    std::vector<HostTensor> two = one, sum = one;
    const std::vector<HostTensor> others = draw(op, 4);
    for (int operand : group) {
      two[operand] = others[operand];
      for (std::size_t i = 0; i < sum[operand].data.size(); ++i)
        sum[operand].data[i] += two[operand].data[i];
    }
    auto a = runOn(op, one, -1), b = runOn(op, two, -1);
    const auto both = runOn(op, sum, -1);
    for (std::size_t r = 0; r < both.size(); ++r) {
      for (std::size_t i = 0; i < a[r].data.size(); ++i)
        a[r].data[i] += b[r].data[i];
      expectNear(both[r], a[r].data);
    }
  }
}

// Two samples have six tokens of width 4, which choose two of four experts. The
// capacity is two tokens, so that at most 8 of 12 choices are served.
INSTANTIATE_TEST_SUITE_P(
    Operators, MoePromises,
    ::testing::Values(
        Promise{"moe_gate",
                R"(%r = mtp.moe_gate "l" (%a) {top_k = 2 : i64, normalise}
                     : tensor<2x6x4xf64>)",
                {"b", "s"},
                {{2, 6, 4}}},
        Promise{"moe_gate_grad",
                R"(%r = mtp.moe_gate_grad "l" (%a, %b) {top_k = 2 : i64}
                     : tensor<2x6x4xf64>)",
                {"b", "s"},
                {{2, 6, 4}, {2, 6, 4}}},
        Promise{"moe_slots",
                R"(%r = mtp.moe_slots "l" (%a) {top_k = 2 : i64}
                     : (tensor<2x6x4xf64>) -> tensor<2x6x4xi32>)",
                {"b"},
                {{2, 6, 4}}},
        Promise{"moe_dispatch",
                R"(%r = mtp.moe_dispatch "l" (%a, %b) : (tensor<2x6x4xf64>,
                     tensor<2x6x4xf64>) -> tensor<4x2x2x4xf64>)",
                {"b", "s", "e", "h"},
                {{2, 6, 4}, {2, 6, 4}}},
        Promise{"moe_dispatch_grad",
                R"(%r = mtp.moe_dispatch_grad "l" (%a, %b)
                     : (tensor<2x6x4xf64>, tensor<4x2x2x4xf64>)
                     -> tensor<2x6x4xf64>)",
                {"b", "s", "e", "h"},
                {{2, 6, 4}, {4, 2, 2, 4}}},
        Promise{"moe_combine",
                R"(%r = mtp.moe_combine "l" (%a, %b, %c)
                     : (tensor<4x2x2x4xf64>, tensor<2x6x4xf64>,
                        tensor<2x6x4xf64>) -> tensor<2x6x4xf64>)",
                {"b", "s", "e", "h"},
                {{4, 2, 2, 4}, {2, 6, 4}, {2, 6, 4}}},
        Promise{"moe_combine_grad",
                R"(%r:2 = mtp.moe_combine_grad "l" (%a, %b, %c, %d)
                     : (tensor<4x2x2x4xf64>, tensor<2x6x4xf64>,
                        tensor<2x6x4xf64>, tensor<2x6x4xf64>)
                     -> (tensor<4x2x2x4xf64>, tensor<2x6x4xf64>))",
                {"b", "s", "e", "h"},
                {{4, 2, 2, 4}, {2, 6, 4}, {2, 6, 4}, {2, 6, 4}}},
        Promise{"balance_loss",
                R"(%r = mtp.balance_loss "l" (%a, %b)
                     {top_k = 2 : i64, coefficient = 0.5 : f64}
                     : (tensor<2x6x4xf64>, tensor<f64>) -> tensor<f64>)",
                {"b"},
                {{2, 6, 4}, {}}},
        Promise{"balance_loss_grad",
                R"(%r = mtp.balance_loss_grad "l" (%a, %b)
                     {top_k = 2 : i64, coefficient = 0.5 : f64}
                     : (tensor<2x6x4xf64>, tensor<f64>) -> tensor<2x6x4xf64>)",
                {"b"},
                {{2, 6, 4}, {}}}),
    [](const auto &test) { return std::string(test.param.name); });

} // namespace
} // namespace mtplan::ir
