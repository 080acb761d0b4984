//===- draws_test.cpp - The generator and what is drawn ---------===//

#include <cmath>

#include <gtest/gtest.h>

#include "runtime/random/draws.h"

namespace mtplan::runtime {
namespace {

// Known answers of the Random123 distribution of Salmon et al.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Draws, StreamsDifferInEachOfTheirParts) {
  const auto base = streamOf(Purpose::mask, "drop", 1, 2, 3);
  EXPECT_EQ(base, streamOf(Purpose::mask, "drop", 1, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::data, "drop", 1, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop2", 1, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop", 9, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop", 1, 9, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop", 1, 2, 9));
  EXPECT_NE(Stream::ofMask({1, 1, 0, 0}, "m").wordsAt(0),
            Stream::ofMask({2, 1, 0, 0}, "m").wordsAt(0));
  // The index is 64 bits wide.
  const Stream stream = Stream::ofMask({1, 1, 0, 0}, "m");
  EXPECT_NE(stream.wordsAt(5), stream.wordsAt(5 + (std::int64_t{1} << 32)));
}

TEST(Draws, NormalsHaveTheirMoments) {
  const Stream stream = Stream::ofParameter(7, "w", 0);
  double sum = 0, squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.normalAt(i);
    sum += x;
    squares += x * x;
  }
  // Four standard errors.
  EXPECT_NEAR(sum / kDraws, 0.0, 4 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1.0, 4 * std::sqrt(2.0 / kDraws));
}

TEST(Draws, TargetsStayBelowTheLimitAndOneInEightIsAbsent) {
  const Stream stream = Stream::ofData({1, 1, 0, 0}, "targets");
  int absent = 0, seen[5] = {};
  for (int i = 0; i < 8000; ++i) {
    const double target = targetValue(stream, i, 5);
    ASSERT_GE(target, -1);
    ASSERT_LT(target, 5);
    if (target < 0)
      ++absent;
    else
      ++seen[static_cast<int>(target)];
  }
  EXPECT_NEAR(absent, 1000, 4 * std::sqrt(8000 * 7 / 64.0));
  for (int count : seen)
    EXPECT_NEAR(count, 1400, 4 * std::sqrt(1400.0));
}

TEST(Draws, MasksKeepTheMean) {
  const Stream stream = Stream::ofMask({1, 1, 0, 0}, "m");
  int kept = 0;
  for (int i = 0; i < 8000; ++i) {
    const double factor = maskValue(stream, 0.25, i);
    ASSERT_TRUE(factor == 0.0 || factor == 4.0 / 3.0);
    kept += factor != 0.0;
    EXPECT_EQ(maskValue(stream, 0.0, i), 1.0);
  }
  EXPECT_NEAR(kept, 6000, 4 * std::sqrt(8000 * 3 / 16.0));
}

// One micro-batch of eight samples or eight of one: the same elements go.
TEST(Draws, MasksGoOnFromMicroBatchToMicroBatch) {
  const Moment first{1, 5, 0, 2}, fourth{1, 5, 3, 2};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(maskIndex(fourth, 10, i), maskIndex(first, 80, 30 + i));
    EXPECT_EQ(Stream::ofMask(first, "m").wordsAt(i),
              Stream::ofMask(fourth, "m").wordsAt(i));
  }
  const Stream stream = Stream::ofMask(first, "m");
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(maskValue(stream, 0.5, i) == 0.0,
              stream.wordsAt(i / 4)[static_cast<std::size_t>(i % 4)] <
                  0x80000000U);
}

TEST(Draws, NoParameterIsLeftAtZeroOrOne) {
  const Stream stream = Stream::ofParameter(1, "b", 0);
  for (int i = 0; i < 100; ++i) {
    const double normal = stream.normalAt(i);
    EXPECT_DOUBLE_EQ(initialValue(stream, "normal", i), 0.3 * normal);
    EXPECT_DOUBLE_EQ(initialValue(stream, "residual", i), 0.3 * normal);
    EXPECT_DOUBLE_EQ(initialValue(stream, "zeros", i), 0.1 * normal);
    EXPECT_DOUBLE_EQ(initialValue(stream, "ones", i), 1 + 0.1 * normal);
  }
}

} // namespace
} // namespace mtplan::runtime
