//===- attention_shape_test.cpp - Shapes of attention for cuDNN -----------===//

#include <gtest/gtest.h>

#include "runtime/cuda/cudnn/fused_attention.h"

namespace mtplan::runtime::cuda {
namespace {

constexpr ElementType kBf16 = ElementType::bf16, kF32 = ElementType::f32;

/// Returns attention with four query and two key heads of 64 features.
KernelSpec forward(std::int64_t queries, std::int64_t keys) {
  const TensorView query{kBf16, {3, queries, 256}, {}},
      key{kBf16, {3, keys, 128}, {}};
  return {"attention",
          "layer",
          {{"causal", std::int64_t{1}},
           {"head_dim", std::int64_t{64}},
           {"scale", 0.125}},
          {query, key, key},
          {query, {kF32, {3, queries, 4}, {}}}};
}

KernelSpec backward(std::int64_t queries, std::int64_t keys) {
  KernelSpec spec = forward(queries, keys);
  const TensorView query = spec.inputs[0], key = spec.inputs[1];
  spec.kernel = "attention_grad";
  spec.inputs = {query, key, key, query, spec.outputs[1], query};
  spec.outputs = {query, key, key};
  return spec;
}

TEST(AttentionShape, IsThatOfTheKernel) {
  const AttentionShape expected{3, 16, 4, 16, 16, 2, 64, true, 0.125, kBf16};
  EXPECT_EQ(attentionShapeOf(forward(16, 16)), expected);
  EXPECT_EQ(attentionShapeOf(backward(16, 16)), expected);
}

TEST(AttentionShape, UsesTheKeysThatTheLastQuerySees) {
  KernelSpec spec = backward(16, 64);
  spec.inputs[0].pieces = {{0, 3}, {32, 64}, {0, 256}};
  ASSERT_TRUE(attentionShapeOf(spec));
  EXPECT_EQ(attentionShapeOf(spec)->keys, 48);
  EXPECT_EQ(attentionShapeOf(spec)->keyRows, 64);
  spec.settings[0].value = std::int64_t{0};
  EXPECT_EQ(attentionShapeOf(spec)->keys, 64);
}

TEST(AttentionShape, IsCutIntoEqualNumbersOfSamples) {
  AttentionShape shape = *attentionShapeOf(forward(16, 16));
  shape.batch = 12;
  std::vector<std::int64_t> asked;
  const auto some = mostSamples(shape, [&](const AttentionShape &one) {
    asked.push_back(one.batch);
    return one.batch < 4;
  });
  ASSERT_TRUE(some);
  EXPECT_EQ(some->batch, 3);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{12, 6, 4, 3}));
  EXPECT_FALSE(mostSamples(shape, [](const auto &) { return false; }));
}

TEST(AttentionShape, UnsupportedAttentionHasNoShape) {
  KernelSpec drops = forward(16, 16);
  drops.settings.push_back({"rate", 0.1});
  EXPECT_FALSE(attentionShapeOf(drops));
  KernelSpec biased = forward(16, 16);
  biased.inputs.push_back({kBf16, {8, 4}, {}});
  EXPECT_FALSE(attentionShapeOf(biased));
  KernelSpec wide = forward(16, 16);
  for (TensorView &one : wide.inputs)
    one.type = kF32;
  EXPECT_FALSE(attentionShapeOf(wide));
  KernelSpec mixed = backward(16, 16);
  mixed.outputs[2].type = kF32;
  EXPECT_FALSE(attentionShapeOf(mixed));
  KernelSpec narrowSums = backward(16, 16);
  narrowSums.inputs[4].type = kBf16;
  EXPECT_FALSE(attentionShapeOf(narrowSums));
}

} // namespace
} // namespace mtplan::runtime::cuda
