//===- loss_scaler_test.cpp - Golden traces of the loss scaler ------------===//

#include <limits>

#include <gtest/gtest.h>

#include "runtime/training/gradient_factor.h"
#include "runtime/training/loss_scaler.h"

namespace mtplan::runtime {
namespace {

LossScaler scalerNamed(const char *name) {
  return LossScaler(lossScalerNamed(name).value());
}

void cleanSteps(LossScaler &scaler, int steps) {
  for (int i = 0; i < steps; ++i)
    ASSERT_EQ(scaler.after(false), ScalerVerdict::update);
}

TEST(LossScaler, MegatronForgivesOneOverflow) {
  LossScaler scaler = scalerNamed("megatron");
  EXPECT_EQ(scaler.scale(), 0x1p32);
  for (double expected : {0x1p32, 0x1p31, 0x1p30}) {
    EXPECT_EQ(scaler.after(true), ScalerVerdict::skip);
    EXPECT_EQ(scaler.scale(), expected);
  }
}

// A good step between two overflows does not reset the hysteresis; growth does.
TEST(LossScaler, HysteresisIsRefilledByGrowthAlone) {
  LossScaler scaler = scalerNamed("megatron");
  scaler.after(true);
  cleanSteps(scaler, 999);
  EXPECT_EQ(scaler.scale(), 0x1p32);
  scaler.after(true);
  EXPECT_EQ(scaler.scale(), 0x1p31);
  cleanSteps(scaler, 1000);
  EXPECT_EQ(scaler.scale(), 0x1p32);
  scaler.after(true);
  EXPECT_EQ(scaler.scale(), 0x1p32);
  scaler.after(true);
  EXPECT_EQ(scaler.scale(), 0x1p31);
}

TEST(LossScaler, DeepSpeedGrowsEveryThousandCleanSteps) {
  LossScaler scaler = scalerNamed("deepspeed");
  cleanSteps(scaler, 999);
  EXPECT_EQ(scaler.scale(), 65536);
  cleanSteps(scaler, 1);
  EXPECT_EQ(scaler.scale(), 131072);
  cleanSteps(scaler, 1000);
  EXPECT_EQ(scaler.scale(), 262144);
}

TEST(LossScaler, TorchShrinksAtOnceAndGrowsAfterTwoThousand) {
  LossScaler scaler = scalerNamed("torch");
  EXPECT_EQ(scaler.after(true), ScalerVerdict::skip);
  EXPECT_EQ(scaler.scale(), 32768);
  cleanSteps(scaler, 1999);
  EXPECT_EQ(scaler.scale(), 32768);
  cleanSteps(scaler, 1);
  EXPECT_EQ(scaler.scale(), 65536);
}

TEST(LossScaler, BmtrainAndNvidia) {
  LossScaler bmtrain = scalerNamed("bmtrain");
  cleanSteps(bmtrain, 1024);
  EXPECT_EQ(bmtrain.scale(), 2048);
  LossScaler nvidia = scalerNamed("nvidia");
  EXPECT_EQ(nvidia.scale(), 0x1p24);
  EXPECT_EQ(lossScalerNamed("apex"), std::nullopt);
}

TEST(LossScaler, StopsAtItsMinimumWithAMessage) {
  LossScalerSettings settings;
  settings.initial = 3;
  LossScaler scaler(settings);
  EXPECT_EQ(scaler.after(true), ScalerVerdict::skip);
  EXPECT_EQ(scaler.scale(), 1.5);
  EXPECT_EQ(scaler.after(true), ScalerVerdict::skip);
  EXPECT_EQ(scaler.scale(), 1.0);
  EXPECT_EQ(scaler.after(true), ScalerVerdict::exhausted);
  EXPECT_EQ(scaler.scale(), 1.0);
  EXPECT_EQ(scaler.after(false), ScalerVerdict::update);
}

TEST(LossScaler, GrowsNoFurtherThanSinglePrecision) {
  LossScalerSettings settings;
  settings.initial = 0x1p126;
  settings.window = 1;
  LossScaler scaler(settings);
  cleanSteps(scaler, 3);
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(LossScaler, GoesOnFromItsState) {
  const LossScalerSettings settings = lossScalerNamed("megatron").value();
  LossScaler whole(settings);
  for (int i = 0; i < 1500; ++i)
    whole.after(i % 700 == 3);
  LossScaler resumed(settings, whole.state());
  for (int i = 1500; i < 4000; ++i) {
    whole.after(i % 700 == 3);
    resumed.after(i % 700 == 3);
    ASSERT_EQ(whole.state(), resumed.state());
  }
}

TEST(LossScaler, FaultsAreNamed) {
  for (const char *name :
       {"megatron", "deepspeed", "torch", "bmtrain", "nvidia"})
    EXPECT_EQ(faultOf(lossScalerNamed(name).value()), "");
  const auto faultWith = [](auto change) {
    LossScalerSettings settings;
    change(settings);
    return faultOf(settings);
  };
  EXPECT_NE(faultWith([](auto &s) { s.floor = 0; }), "");
  EXPECT_NE(faultWith([](auto &s) { s.initial = 0.5; }), "");
  EXPECT_NE(faultWith([](auto &s) { s.initial = 1e300; }), "");
  EXPECT_NE(faultWith([](auto &s) { s.growth = 1; }), "");
  EXPECT_NE(faultWith([](auto &s) { s.backoff = 1; }), "");
  EXPECT_NE(faultWith([](auto &s) { s.window = 0; }), "");
  EXPECT_NE(faultWith([](auto &s) { s.hysteresis = 0; }), "");
}

//===----------------------------------------------------------------------===//
// Clip and unscale
//===----------------------------------------------------------------------===//

TEST(GradientFactor, ClipsAboveTheLargestNormAlone) {
  // A norm of 5 is clipped to 1 by the factor 1 / (5 + 1e-6).
  const GradientFactor five = gradientFactorOf(25, 1, 1);
  EXPECT_EQ(five.norm, 5);
  EXPECT_DOUBLE_EQ(five.factor, 1 / 5.000001);
  EXPECT_FALSE(five.overflow);
  EXPECT_EQ(gradientFactorOf(0.25, 1, 1).factor, 1);
  EXPECT_EQ(gradientFactorOf(25, 1, 0).factor, 1); // no clip
  EXPECT_EQ(gradientFactorOf(0, 1, 1).norm, 0);
}

TEST(GradientFactor, UnscalesBeforeItClips) {
  // The gradients have norm 5 and the loss scale 1024.
  const GradientFactor scaled = gradientFactorOf(25.0 * 1024 * 1024, 1024, 1);
  EXPECT_EQ(scaled.norm, 5);
  EXPECT_DOUBLE_EQ(scaled.factor, 1 / 5.000001 / 1024);
  EXPECT_EQ(gradientFactorOf(25.0 * 1024 * 1024, 1024, 8).factor, 1.0 / 1024);
}

TEST(GradientFactor, InfinityAndNoNumberAreOverflows) {
  EXPECT_TRUE(gradientFactorOf(INFINITY, 1, 1).overflow);
  EXPECT_TRUE(gradientFactorOf(NAN, 1, 1).overflow);
}

} // namespace
} // namespace mtplan::runtime
