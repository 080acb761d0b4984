//===- draws_test.cpp - The random generator and its draws ----------------===//

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/random/draws.h"

namespace mtplan::runtime {
namespace {

// The answers are those of Random123 by Salmon et al. (kat_vectors).
TEST(Philox, KnownAnswers) {
  const std::uint32_t ones = 0xffffffff;
  const PhiloxCounter zero{}, full{ones, ones, ones, ones},
      pi{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  const PhiloxKey zeroKey{}, fullKey{ones, ones}, piKey{0xa4093822, 0x299f31d0};
  EXPECT_EQ(philox4x32(zero, zeroKey),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(full, fullKey),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(pi, piKey),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  EXPECT_EQ(philox4x32<7>(zero, zeroKey),
            (PhiloxCounter{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32<7>(full, fullKey),
            (PhiloxCounter{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox4x32<7>(pi, piKey),
            (PhiloxCounter{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(Draws, StreamsDifferInEachOfTheirParts) {
  const auto base = streamOf(Purpose::mask, "drop", 1, 2, 3);
  EXPECT_EQ(base, streamOf(Purpose::mask, "drop", 1, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::data, "drop", 1, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop2", 1, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop", 9, 2, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop", 1, 9, 3));
  EXPECT_NE(base, streamOf(Purpose::mask, "drop", 1, 2, 9));
  EXPECT_NE(Stream::ofMask({1, 1, 0, 0}, "m").maskWordsAt(0),
            Stream::ofMask({2, 1, 0, 0}, "m").maskWordsAt(0));
  // The index is 64 bits wide.
  const Stream stream = Stream::ofMask({1, 1, 0, 0}, "m");
  EXPECT_NE(stream.wordsAt(5), stream.wordsAt(5 + (std::int64_t{1} << 32)));
  EXPECT_NE(stream.maskWordsAt(5),
            stream.maskWordsAt(5 + (std::int64_t{1} << 32)));
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
  // The tolerances are four standard errors.
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

// An independent program in Python, with its own Philox, SplitMix64 and FNV-1a,
// computed these values: the words of two draws, and which of the next elements
// are kept at rate 0.3.
TEST(Masks, EqualKnownMasks) {
  const Stream stream =
      Stream::ofMask({(std::uint64_t{9} << 40) + 7, 3, 2, 5}, "h.*.attn.drop");
  const auto kept = [&](std::int64_t first, auto &&place, std::int64_t count) {
    std::string bits;
    for (std::int64_t i = 0; i < count; ++i)
      bits += maskValue(stream, 0.3, first + place(i)) == 0.0 ? '0' : '1';
    return bits;
  };
  const auto plain = [](std::int64_t i) { return i; };
  EXPECT_EQ(stream.maskWordsAt(0),
            (PhiloxCounter{0x1b156269, 0x16136fd5, 0xa5884378, 0xb76cb69f}));
  EXPECT_EQ(kept(0, plain, 32), "10101011011110011111110001111100");
  const std::int64_t far = (std::int64_t{1} << 35) + 8;
  EXPECT_EQ(stream.maskWordsAt(far / 8),
            (PhiloxCounter{0x52bded8a, 0x8a020666, 0xc2ac490f, 0x487ce31c}));
  EXPECT_EQ(kept(far, plain, 32), "11001111010000111111000010111110");
  // Query 7 has 40 scores, in a row with space for 64.
  EXPECT_EQ(scorePitch(40), 64);
  EXPECT_EQ(kept(7 * 64, scoreIndex, 40),
            "0101100001011011101111101110001010110111");
}

// At each position of a draw, the fraction of kept elements is within four
// standard errors. Adjacent elements are uncorrelated, also across draws and
// groups.
TEST(Masks, KeepTheirRateInEveryPlaceAndAreIndependent) {
  const Stream stream = Stream::ofMask({1, 1, 0, 0}, "m");
  constexpr int kElements = 1 << 16;
  for (const double rate : {0.1, 0.25, 0.5, 0.9}) {
    const double variance = rate * (1 - rate);
    std::vector<double> kept;
    int ofPlace[kMaskDraw] = {};
    for (int i = 0; i < kElements; ++i) {
      const double factor = maskValue(stream, rate, i);
      ASSERT_TRUE(factor == 0.0 || factor == 1 / (1 - rate));
      kept.push_back(factor == 0.0 ? 0.0 : 1.0);
      ofPlace[i % kMaskDraw] += factor != 0.0;
    }
    const double ofEach = double{kElements} / kMaskDraw;
    for (const int count : ofPlace)
      EXPECT_NEAR(count, ofEach * (1 - rate), 4 * std::sqrt(ofEach * variance));
    for (const int apart : {1, 2, 8, 32}) {
      double together = 0.0;
      for (int i = 0; i + apart < kElements; ++i)
        together += (kept[i] - (1 - rate)) * (kept[i + apart] - (1 - rate));
      EXPECT_NEAR(together / kElements, 0.0,
                  4 * variance / std::sqrt(kElements));
    }
  }
}

// Other heads, samples, layers and steps use other indices or streams. Any two
// of these masks have as many kept elements in common as independent masks.
TEST(Masks, OfOtherRowsCopiesAndStepsAreUncorrelated) {
  const Stream stream = Stream::ofMask({1, 1, 0, 0}, "m");
  const auto both = [&](const Stream &other, std::int64_t apart) {
    int count = 0;
    for (int i = 0; i < 1 << 14; ++i)
      count += maskValue(stream, 0.5, i) != 0.0 &&
               maskValue(other, 0.5, i + apart) != 0.0;
    return count;
  };
  const double expected = 1 << 12, sigma = std::sqrt((1 << 14) * 3 / 16.0);
  EXPECT_NEAR(both(stream, 1 << 20), expected, 4 * sigma);
  EXPECT_NEAR(both(stream, std::int64_t{1} << 36), expected, 4 * sigma);
  for (const Moment &moment :
       {Moment{2, 1, 0, 0}, Moment{1, 2, 0, 0}, Moment{1, 1, 0, 1}})
    EXPECT_NEAR(both(Stream::ofMask(moment, "m"), 0), expected, 4 * sigma);
}

TEST(Masks, RoundTheirRates) {
  EXPECT_EQ(maskLimit(0.0), 0U);
  EXPECT_EQ(maskLimit(0.1), 3277U); // 3276.8 rounded
  EXPECT_EQ(maskLimit(0.5), 0x4000U);
  for (const double rate : {0.1, 0.3, 1.0 / 3.0, 0.9})
    EXPECT_NEAR(maskLimit(rate) / 32768.0, rate, 0x1p-16);
  // A rate that is too small to drop anything does not scale either.
  EXPECT_EQ(maskLimit(0x1p-17), 0U);
  EXPECT_EQ(maskFactor(0x1p-17), 1.0);
  EXPECT_EQ(maskLimit(0x1p-16), 1U);
  EXPECT_EQ(maskFactor(0.75), 4.0);
  // The highest rate still keeps some elements.
  EXPECT_EQ(maskLimit(0.999999), 0x7FFFU);
  const Stream stream = Stream::ofMask({1, 1, 0, 0}, "m");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(maskValue(stream, 0.0, i), 1.0);
    EXPECT_EQ(maskValue(stream, 0x1p-17, i), 1.0);
  }
}

TEST(Masks, GroupsOfScoresHaveAPlaceForEach) {
  std::set<std::int64_t> places;
  for (std::int64_t key = 0; key < 96; ++key) {
    EXPECT_EQ(scoreIndex(key) / kScoreGroup, key / kScoreGroup);
    places.insert(scoreIndex(key));
  }
  EXPECT_EQ(places.size(), 96U);
  EXPECT_EQ(scorePitch(1), 32);
  EXPECT_EQ(scorePitch(64), 64);
}

// One micro-batch of eight samples and eight micro-batches of one sample drop
// the same elements.
TEST(Draws, MasksContinueAcrossMicroBatches) {
  const Moment first{1, 5, 0, 2}, fourth{1, 5, 3, 2};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(maskIndex(fourth, 10, i), maskIndex(first, 80, 30 + i));
    EXPECT_EQ(Stream::ofMask(first, "m").maskWordsAt(i),
              Stream::ofMask(fourth, "m").maskWordsAt(i));
  }
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
