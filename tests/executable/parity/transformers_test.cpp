//===- transformers_test.cpp - Plans with weights of Transformers ---------===//
//
// For each family there is a tiny model of Transformers, the tensors of its
// file, and its results on some samples (tests/parity). A plan with these
// tensors, mapped by the weight rules, gives the same loss and the same
// gradient norm. With keys in place of values, or with the other pairing of
// rotated features, the results differ.
//
//===----------------------------------------------------------------------===//

#include <cmath>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/weights/weight_rules.h"
#include "tests/executable/parity/torch_golden.h"

namespace mtplan {
namespace {

using Shape = std::vector<std::int64_t>;

/// Holds the shape of a parameter over all ranks, with and without padding.
struct Whole {
  Shape padded, used;
};

std::map<std::string, Whole> wholesOf(const runtime::Plan &plan) {
  std::map<std::string, Whole> wholes;
  for (const runtime::Stage &stage : plan.stages)
    for (const runtime::Parameter &parameter : stage.parameters) {
      Whole whole;
      whole.padded = parameter.value.shape;
      for (std::size_t d = 0; d < parameter.value.split.size(); ++d)
        for (int axis : parameter.value.split[d])
          whole.padded[d] *= plan.mesh[static_cast<std::size_t>(axis)].size;
      whole.used =
          parameter.unpadded.empty() ? whole.padded : parameter.unpadded;
      for (int copy = 0; copy < parameter.copies; ++copy)
        wholes[ir::TensorKey{parameter.label, parameter.firstCopy + copy}
                   .name()] = whole;
    }
  return wholes;
}

std::size_t at(const Shape &shape, std::int64_t row, std::int64_t column) {
  return static_cast<std::size_t>(row * (shape.size() > 1 ? shape[1] : 1) +
                                  column);
}

/// Adds to `initial` the values of the parameters that `rule` maps to `tensor`,
/// a tensor of the file. Padding is 0.
void take(const runtime::WeightRule &rule, const FileTensor &tensor,
          const std::map<std::string, Whole> &wholes, Numbers &initial) {
  std::vector<Shape> shapes;
  for (const std::string &label : rule.labels)
    shapes.push_back(wholes.at(label).used);
  ASSERT_EQ(runtime::shapeInFile(rule, shapes), tensor.shape) << rule.name;
  std::int64_t before = 0;
  for (const std::string &label : rule.labels) {
    const Whole &whole = wholes.at(label);
    const Shape &used = whole.used;
    std::int64_t count = 1;
    for (std::int64_t size : whole.padded)
      count *= size;
    std::vector<double> &values = initial[label];
    values.assign(static_cast<std::size_t>(count), 0.0);
    for (std::int64_t r = 0; r < used[0]; ++r)
      for (std::int64_t c = 0; c < (used.size() > 1 ? used[1] : 1); ++c) {
        std::int64_t row = rule.transposed ? c : r;
        std::int64_t column = rule.transposed ? r : c;
        (rule.along == 0 ? row : column) += before;
        values[at(whole.padded, r, c)] =
            tensor.elements[at(tensor.shape, row, column)];
      }
    const bool rows = (rule.along == 0) != rule.transposed;
    before += used[rows ? 0 : 1];
  }
}

class Transformers : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    read = readTransformersGolden(GetParam());
    for (const auto &[name, tensor] : read.tensors)
      names.push_back(name);
    plan = planned(read.golden, {"--gpus", "1", "--micro-batch", "8"},
                   runtime::ElementType::f64);
    ASSERT_TRUE(plan);
    table =
        runtime::weightTable(runtime::recogniseWeights(names), labelsOf(*plan));
    runtime::expectWeights(table, names);
  }

  static std::vector<std::string> labelsOf(const runtime::Plan &plan) {
    std::vector<std::string> labels;
    for (const runtime::Stage &stage : plan.stages)
      for (const runtime::Parameter &parameter : stage.parameters)
        labels.push_back(parameter.label);
    return labels;
  }

  /// Returns loss and gradient norm with these rules after `change`.
  std::pair<double, double>
  run(const runtime::Plan &runs, const std::vector<runtime::WeightRule> &rules,
      const std::function<void(Numbers &)> &change = {}) {
    Golden golden = read.golden;
    const auto wholes = wholesOf(runs);
    for (const runtime::WeightRule &rule : rules)
      take(rule, read.tensors.at(rule.name), wholes, golden.initial);
    if (change)
      change(golden.initial);
    TorchRun ran = train(runs, golden, runtime::makeReferenceBackend, 1e-9);
    EXPECT_EQ(ran.faults, std::vector<std::string>());
    return {ran.numbers.at("loss").at(0), ran.numbers.at("norm").at(0)};
  }

  double expectedLoss() const { return read.golden.numbers.at("loss").at(0); }

  TransformersGolden read;
  std::vector<std::string> names;
  std::optional<runtime::Plan> plan;
  runtime::WeightTable table;
};

// kBound limits relative errors: Transformers rounds norms, rotations and
// softmax to single precision. Wrong weights change the loss by more than
// kFar.
constexpr double kBound = 1e-6, kFar = 1e-3;

TEST_P(Transformers, HaveTheSameLossAndNorm) {
  const double norm = read.golden.numbers.at("norm").at(0);
  auto split = planned(read.golden,
                       {"--gpus", "2", "--dp", "1", "--tp", "2",
                        "--micro-batch", "4", "--splits", "column,row,vocab"},
                       runtime::ElementType::f64);
  ASSERT_TRUE(split);
  for (const runtime::Plan &one : {*plan, *split}) {
    auto [loss, gradients] = run(one, table.rules);
    EXPECT_NEAR(loss, expectedLoss(), kBound * expectedLoss());
    EXPECT_NEAR(gradients, norm, 10.0 * kBound * norm);
  }
}

TEST_P(Transformers, KeysInPlaceOfValuesDiffer) {
  std::vector<runtime::WeightRule> rules = table.rules;
  for (runtime::WeightRule &rule : rules)
    for (std::string &label : rule.labels) {
      std::size_t key = label.find("attn.k."), value = label.find("attn.v.");
      if (key != label.npos)
        label[key + 5] = 'v';
      if (value != label.npos)
        label[value + 5] = 'k';
    }
  EXPECT_GT(std::abs(run(*plan, rules).first - expectedLoss()), kFar);
}

// Four features of each head are rotated. Pairs are neighbours or consist of
// one feature of each half; the two orders differ in the middle two features.
// Without rotation, attention does not depend on the order if queries and keys
// have the same order.
TEST_P(Transformers, OtherRotaryPairingDiffers) {
  const std::string family = GetParam();
  const std::int64_t headDim = family == "gptj" ? 8 : 4;
  const auto wholes = wholesOf(*plan);
  auto [loss, norm] = run(*plan, table.rules, [&](Numbers &initial) {
    for (auto &[label, values] : initial) {
      if (label.find("attn.q.") == label.npos &&
          label.find("attn.k.") == label.npos)
        continue;
      const Shape &shape = wholes.at(label).padded;
      for (std::size_t head = 0; head < values.size();
           head += static_cast<std::size_t>(headDim))
        std::swap(values[head + 1], values[head + 2]);
      EXPECT_EQ(shape.back() % headDim, 0);
    }
  });
  if (family == "gpt2" || family == "bert")
    EXPECT_NEAR(loss, expectedLoss(), kBound * expectedLoss());
  else
    EXPECT_GT(std::abs(loss - expectedLoss()), kFar);
}

INSTANTIATE_TEST_SUITE_P(Families, Transformers,
                         ::testing::Values("gpt2", "gptj", "llama", "mistral",
                                           "qwen2", "bert"),
                         [](const auto &each) {
                           return std::string(each.param);
                         });

} // namespace
} // namespace mtplan
