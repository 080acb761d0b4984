//===- update_rule_test.cpp - Whether and how a step updates --------------===//

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/training/update_rule.h"

namespace mtplan::runtime {
namespace {

TEST(UpdateRule, FiniteGradientsAreClippedAndUnscaled) {
  UpdateRuleSettings settings;
  UpdateRule plain(settings);
  const UpdateDecision five = plain.decide(1, 25);
  EXPECT_TRUE(five.update);
  EXPECT_EQ(five.norm, 5);
  EXPECT_DOUBLE_EQ(five.factor, 1 / 5.000001);
  EXPECT_EQ(five.stop, "");
  EXPECT_EQ(plain.lossScale(), 1);

  settings.scaler = LossScalerSettings{}; // the initial scale is 65536
  UpdateRule scaled(settings);
  EXPECT_EQ(scaled.lossScale(), 65536);
  EXPECT_DOUBLE_EQ(scaled.decide(1, 25 * 65536.0 * 65536.0).factor,
                   1 / 5.000001 / 65536);
}

TEST(UpdateRule, WithoutAScaleTheFirstOverflowStops) {
  UpdateRule rule({});
  const UpdateDecision decision = rule.decide(12, NAN);
  EXPECT_FALSE(decision.update);
  // A NaN may have either sign.
  EXPECT_TRUE(decision.stop == "step 12: the gradients' norm is nan" ||
              decision.stop == "step 12: the gradients' norm is -nan")
      << decision.stop;
  EXPECT_EQ(UpdateRule({}).decide(3, INFINITY).stop,
            "step 3: the gradients' norm is inf");
}

TEST(UpdateRule, SkippingIsBounded) {
  UpdateRuleSettings settings;
  settings.skipNonFinite = true;
  settings.mostSkipped = 3;
  UpdateRule rule(settings);
  EXPECT_EQ(rule.decide(1, INFINITY).stop, "");
  EXPECT_FALSE(rule.decide(2, INFINITY).update);
  EXPECT_TRUE(rule.decide(3, 1).update); // resets the count
  rule.decide(4, INFINITY);
  EXPECT_EQ(rule.decide(5, INFINITY).stop, "");
  EXPECT_EQ(rule.decide(6, INFINITY).stop,
            "step 6: the gradients' norm is inf, the last of 3 steps in a row "
            "without an update; at most 2 may be skipped");
}

TEST(UpdateRule, ScaleShrinksToItsMinimum) {
  UpdateRuleSettings settings;
  settings.scaler = LossScalerSettings{};
  settings.scaler->initial = 2;
  UpdateRule rule(settings);
  const UpdateDecision first = rule.decide(1, INFINITY);
  EXPECT_FALSE(first.update);
  EXPECT_EQ(first.stop, "");
  EXPECT_EQ(rule.lossScale(), 1);
  EXPECT_EQ(rule.decide(2, INFINITY).stop,
            "step 2: the gradients' norm is inf although the loss scale is at "
            "its floor of 1");
}

TEST(UpdateRule, GoesOnFromItsState) {
  UpdateRuleSettings settings;
  settings.scaler = lossScalerNamed("megatron");
  UpdateRule whole(settings);
  for (int step = 1; step <= 5; ++step)
    whole.decide(step, step % 2 == 0 ? 1 : INFINITY);
  UpdateRule resumed(settings, whole.state());
  EXPECT_EQ(resumed.lossScale(), whole.lossScale());
  EXPECT_EQ(resumed.state(), whole.state());
  EXPECT_EQ(whole.state().skipped, 1);
  whole.decide(6, INFINITY);
  resumed.decide(6, INFINITY);
  EXPECT_EQ(resumed.state(), whole.state());
  EXPECT_EQ(whole.state().skipped, 2);
}

} // namespace
} // namespace mtplan::runtime
