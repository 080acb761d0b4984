//===- learning_rate_test.cpp - Golden values of all schedules ------------===//

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/training/learning_rate.h"

namespace mtplan::runtime {
namespace {

// GPT-2's schedule has the peak 1.5e-4, 3 000 steps of warm-up and a cosine to
// 1e-5 at step 300 000. The values are those of Megatron-LM's get_lr.
TEST(LearningRate, CosineOfGpt2) {
  LearningRate rate;
  rate.decay = Decay::cosine;
  rate.peak = 1.5e-4;
  rate.floor = 1e-5;
  rate.warmup = 3000;
  rate.end = 300000;
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1), 5e-8);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1500), 7.5e-5);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 3000), 1.5e-4);
  EXPECT_NEAR(learningRateAt(rate, 77250), 1.2949747e-4, 1e-11);
  EXPECT_NEAR(learningRateAt(rate, 151500), 8.0e-5, 1e-15);
  EXPECT_NEAR(learningRateAt(rate, 225750), 3.0502525e-5, 1e-12);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 300000), 1e-5);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 300001), 1e-5);
}

TEST(LearningRate, LinearOfBert) {
  LearningRate rate;
  rate.decay = Decay::linear;
  rate.peak = 1e-4;
  rate.warmup = 10000;
  rate.end = 2000000;
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1), 1e-8);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 5000), 5e-5);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 10000), 1e-4);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1005000), 5e-5);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 2000000), 0.0);
}

TEST(LearningRate, ConstantHasWarmUpAndNoEnd) {
  LearningRate rate;
  rate.peak = 1e-3;
  rate.start = 2e-4;
  rate.warmup = 8;
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1), 3e-4);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 4), 6e-4);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 8), 1e-3);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 9), 1e-3);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1000000), 1e-3);
  rate.warmup = 0;
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 1), 1e-3);
}

// The rate is 1e-3 sqrt(100 / step), but at least 1e-4.
TEST(LearningRate, InverseSquareRoot) {
  LearningRate rate;
  rate.decay = Decay::inverseSquareRoot;
  rate.peak = 1e-3;
  rate.floor = 1e-4;
  rate.warmup = 100;
  rate.end = 50000;
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 50), 5e-4);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 100), 1e-3);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 400), 5e-4);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 2500), 2e-4);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 40000), 1e-4);
  EXPECT_DOUBLE_EQ(learningRateAt(rate, 50001), 1e-4);
}

// After 10 steps of warm-up, the rate is 1 until step 800 of 1 000, and then
// decays to 0.2.
TEST(LearningRate, WarmUpStableDecay) {
  LearningRate rate;
  rate.decay = Decay::wsd;
  rate.peak = 1.0;
  rate.floor = 0.2;
  rate.warmup = 10;
  rate.end = 1000;
  rate.annealing = 200;
  const struct {
    Annealing shape;
    double quarter, half; // values after a quarter and half of the decay
  } golden[] = {{Annealing::linear, 0.75, 0.5},
                {Annealing::cosine, 0.8535533905932737, 0.5},
                {Annealing::exponential, 0.681792830507429, 0.414213562373095},
                {Annealing::minusSqrt, 0.5, 0.292893218813453}};
  for (const auto &[shape, quarter, half] : golden) {
    SCOPED_TRACE(static_cast<int>(shape));
    rate.shape = shape;
    EXPECT_DOUBLE_EQ(learningRateAt(rate, 5), 0.5);
    EXPECT_DOUBLE_EQ(learningRateAt(rate, 11), 1.0);
    EXPECT_DOUBLE_EQ(learningRateAt(rate, 800), 1.0);
    EXPECT_NEAR(learningRateAt(rate, 850), 0.2 + 0.8 * quarter, 1e-14);
    EXPECT_NEAR(learningRateAt(rate, 900), 0.2 + 0.8 * half, 1e-14);
    EXPECT_NEAR(learningRateAt(rate, 1000), 0.2, 1e-14);
    EXPECT_DOUBLE_EQ(learningRateAt(rate, 1001), 0.2);
  }
}

TEST(LearningRate, FaultsHaveBothNumbers) {
  LearningRate rate;
  EXPECT_EQ(faultOf(rate), "");
  rate.floor = 1;
  EXPECT_EQ(faultOf(rate),
            "the learning rate's floor of 1 is above its peak of 0.001");
  rate.floor = 0;
  rate.start = 2;
  EXPECT_EQ(faultOf(rate), "warm-up starts at 2, above the peak of 0.001");
  rate.start = 0;
  rate.decay = Decay::cosine;
  rate.warmup = 10;
  rate.end = 10;
  EXPECT_EQ(faultOf(rate), "the decay ends at step 10, warm-up takes 10: it "
                           "needs to end at 11 or later");
  rate.decay = Decay::wsd;
  rate.end = 20;
  rate.annealing = 11;
  EXPECT_EQ(faultOf(rate),
            "WSD decays over 11 steps, needs 1 to the 10 between "
            "warm-up and end");
  rate.annealing = 10;
  EXPECT_EQ(faultOf(rate), "");
  rate.peak = NAN;
  EXPECT_NE(faultOf(rate), "");
}

TEST(LearningRate, NamesAreThoseOfTheSchedules) {
  EXPECT_EQ(decayNamed("inverse-square-root"), Decay::inverseSquareRoot);
  EXPECT_EQ(decayNamed("wsd"), Decay::wsd);
  EXPECT_EQ(decayNamed("polynomial"), std::nullopt);
  EXPECT_EQ(annealingNamed("minus-sqrt"), Annealing::minusSqrt);
  EXPECT_EQ(annealingNamed(""), std::nullopt);
}

} // namespace
} // namespace mtplan::runtime
