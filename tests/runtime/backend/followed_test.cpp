//===- followed_test.cpp - Kernels with fused consumers -------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/backend/followed.h"
#include "tests/runtime/backend/fused_cases.h"

namespace mtplan::runtime::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr ElementType kBf16 = ElementType::bf16, kF32 = ElementType::f32;

KernelSpec linear(const char *then, ElementType type, std::int64_t width) {
  const TensorView out{type, {2, 8, width}, {}};
  return {"einsum",
          "h.*.mlp.fc1",
          {{"equation", std::string("bsi,io->bso")},
           {"then", std::string(then)},
           {"kind", std::string("gelu_tanh")}},
          {{type, {2, 8, 16}, {}}, {type, {16, width}, {}}},
          {out, out}};
}

/// Returns whether separate kernels round the value between them, before the
/// second kernel accumulates it.
bool isRoundedBetween(const Case &both) {
  return both.spec.text(kThen, "") == "accumulate" &&
         bytesOf(both.spec.outputs[0].type) < bytesOf(kF32);
}

TEST(Followed, FusedKernelsKeepTheBitsOfSeparateOnes) {
  for (const auto &make :
       {makeReferenceBackend, +[] { return makeCpuBackend(2); }}) {
    const std::unique_ptr<Backend> backend = make();
    for (ElementType type : {ElementType::f64, kF32, kBf16})
      for (const auto &cases :
           {followedCases(type, 1), droppedCases(type, 1, type, type),
            normGradCases(type, 1, type, type), biasGradientCases(type, 1)})
        for (const Case &both : cases) {
          if (isRoundedBetween(both))
            continue;
          // A fused accumulation need not write the value that it adds.
          const std::string then = both.spec.text(kThen, "");
          const std::vector<Doubles> all = both.run(*backend),
                                     right = inTurn(both, *backend);
          for (std::size_t i = 0; i < all.size(); ++i)
            EXPECT_TRUE((then == "accumulate" && i % 2 == 0) ||
                        all[i] == right[i])
                << both.spec.kernel << " then " << then << ", result " << i;
        }
  }
}

TEST(Followed, InvalidFusionsAreRejected) {
  const std::unique_ptr<Backend> backend = makeReferenceBackend();
  const auto says = [&](const KernelSpec &spec, const char *what) {
    EXPECT_THAT([&] { backend->prepare(spec); },
                ThrowsMessage<std::runtime_error>(HasSubstr(what)));
  };
  says(linear("softmax", kF32, 8),
       "h.*.mlp.fc1 (einsum): then 'softmax' is not activation, "
       "activation_grad, add or accumulate");
  says(linear("add", kF32, 8), "has 2 operands and 2 results; with add there "
                               "are 3 or 4, and 2");
  KernelSpec other = linear("add", kF32, 8);
  other.kernel = "mul";
  says(other, "which only einsum, sum, dropout, layer_norm_grad or "
              "rms_norm_grad may have");
  KernelSpec dropped = droppedCases(kF32, 1, kF32, kF32)[0].spec;
  dropped.settings.back().value = std::string("activation");
  says(dropped, "(dropout): then 'activation' is not add");
  dropped = droppedCases(kF32, 1, kF32, kF32)[0].spec;
  dropped.inputs.pop_back();
  says(dropped, "has 1 operands and 2 results; with add there are 2, and 2");
  KernelSpec summed = biasGradientCases(kF32, 1)[2].spec;
  ASSERT_EQ(summed.kernel, "sum");
  summed.settings.front().value = std::string("add");
  says(summed, "(sum): then 'add' is not accumulate");
  KernelSpec beside = biasGradientCases(kF32, 1)[0].spec;
  beside.outputs.pop_back();
  says(beside, "(einsum): has 2 operands and 1 results; with bias_gradient "
               "there are 2, and 2");
  beside.settings.back().value = std::int64_t{2};
  says(beside, "(einsum): bias_gradient must be 1 or absent");
  beside.kernel = "mul";
  says(beside, "(mul): has bias_gradient, which only an einsum may have");
  beside = biasGradientCases(kF32, 1)[0].spec;
  beside.outputs[1].type = ElementType::i32;
  says(beside, "(sum): takes floating-point numbers, not i32");
  KernelSpec apart = linear("activation", kF32, 8);
  apart.outputs[1].shape[2] = 9;
  says(apart, "(activation)");
}

TEST(FollowedProduct, FusedConsumersBecomeEpilogues) {
  const auto gelu = FollowedProduct::of(linear("activation", kBf16, 24));
  ASSERT_TRUE(gelu);
  EXPECT_EQ(gelu->shape.epilogue, Epilogue::gelu);
  // The library's tanh is not exact enough for 32 bits.
  EXPECT_FALSE(FollowedProduct::of(linear("activation", kF32, 24)));
  EXPECT_FALSE(gelu->shape.adds);
  KernelSpec spec = linear("activation_grad", kBf16, 24);
  spec.inputs.push_back(spec.outputs[0]);
  ASSERT_TRUE(FollowedProduct::of(spec));
  EXPECT_EQ(FollowedProduct::of(spec)->shape.epilogue, Epilogue::geluGrad);
  spec.settings[1].value = std::string("add");
  ASSERT_TRUE(FollowedProduct::of(spec));
  EXPECT_TRUE(FollowedProduct::of(spec)->shape.adds);
  EXPECT_TRUE(FollowedProduct::of(spec)->takesAddend);
}

TEST(FollowedProduct, AccumulatesInTheGradientsType) {
  const TensorView x{kBf16, {2, 8, 16}, {}}, above{kBf16, {2, 8, 24}, {}};
  const KernelSpec spec{"einsum",
                        "h.*.mlp.fc1",
                        {{"equation", std::string("bsi,bso->io")},
                         {"then", std::string("accumulate")}},
                        {x, above},
                        {{kBf16, {16, 24}, {}}, {kF32, {16, 24}, {}}}};
  const auto whole = FollowedProduct::of(spec);
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole->shape.adds);
  EXPECT_EQ(whole->shape.inputs, kBf16);
  EXPECT_EQ(whole->shape.result, kF32);
}

TEST(FollowedProduct, BiasGradientSumsTheGradientOperand) {
  std::vector<Case> cases = biasGradientCases(kBf16, 1);
  // These cases do not accumulate. The bias gradient is a sum of the product's
  // second operand or, if the product is transposed, of its first operand.
  for (const auto &[i, sums] :
       {std::pair(0, OperandSum::b), {1, OperandSum::a}}) {
    const auto whole =
        FollowedProduct::of(cases[static_cast<std::size_t>(i)].spec);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->shape.sums, sums);
    EXPECT_FALSE(whole->shape.adds);
    EXPECT_EQ(whole->result, 0U);
    EXPECT_EQ(whole->biasGradient, 1U);
  }
  const auto added = FollowedProduct::of(cases[3].spec);
  ASSERT_TRUE(added);
  EXPECT_EQ(added->shape.sums, OperandSum::b);
  EXPECT_TRUE(added->shape.adds);
  EXPECT_EQ(added->shape.result, kF32);
  EXPECT_EQ(added->result, 1U);
  EXPECT_EQ(added->biasGradient, 3U);
  // No epilogue makes a bias gradient that has another type than the result, or
  // that is summed over other dimensions than the product.
  KernelSpec other = cases[3].spec;
  other.outputs[3].type = kBf16;
  EXPECT_FALSE(FollowedProduct::of(other));
  other = cases[0].spec;
  other.settings[0].value = std::string("bsi,bso->so");
  other.inputs[0].shape = {3, 37, 1};
  other.outputs[0].shape = {37, 24};
  EXPECT_FALSE(FollowedProduct::of(other));
  // Each expert has its own bias gradient, but an epilogue makes only one.
  EXPECT_FALSE(FollowedProduct::of(cases.back().spec));
}

TEST(FollowedProduct, UnsupportedEpiloguesAreRejected) {
  // There is no epilogue for rows whose bytes are no multiple of 16, for exact
  // GELU, for f64, and for an activation of another type than the product.
  EXPECT_FALSE(FollowedProduct::of(linear("activation", kBf16, 20)));
  KernelSpec exact = linear("activation", kBf16, 24);
  exact.settings[2].value = std::string("gelu");
  EXPECT_FALSE(FollowedProduct::of(exact));
  EXPECT_FALSE(FollowedProduct::of(linear("activation", ElementType::f64, 24)));
  KernelSpec rounded = linear("activation", kBf16, 24);
  rounded.outputs[1].type = kF32;
  EXPECT_FALSE(FollowedProduct::of(rounded));
}

} // namespace
} // namespace mtplan::runtime::testing
