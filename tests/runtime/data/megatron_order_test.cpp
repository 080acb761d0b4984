//===- megatron_order_test.cpp - The order of Megatron-LM's samples -------===//

#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/dataset.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;

std::vector<int> shuffled(std::uint32_t seed) {
  std::vector<int> values(10);
  std::iota(values.begin(), values.end(), 0);
  NumpyRandom(seed).shuffle(std::span(values));
  return values;
}

// numpy.random.RandomState(seed).shuffle(arange(10)) has these orders.
TEST(NumpyRandom, ShufflesAsNumpyDoes) {
  EXPECT_THAT(shuffled(0), ElementsAre(2, 8, 4, 9, 1, 6, 7, 3, 0, 5));
  EXPECT_THAT(shuffled(42), ElementsAre(8, 1, 5, 0, 7, 2, 9, 4, 3, 6));
}

TEST(NumpyRandom, WideIntervalsTakeTwoWordsTheHighOneFirst) {
  // The mask 2^40 - 1 keeps the low 8 bits of the first word and all bits of
  // the second.
  std::mt19937 words(5);
  const std::uint64_t first = words(), second = words();
  EXPECT_EQ(NumpyRandom(5).interval((std::uint64_t{1} << 40) - 1),
            ((first & 0xFF) << 32 | second));
  EXPECT_EQ(NumpyRandom(5).interval(0), 0U);
  EXPECT_EQ(NumpyRandom(5).interval(0xFFFFFFFFU), first);
}

MegatronOrder order(std::int64_t samples, std::int64_t sequence = 4) {
  static const std::vector<std::int64_t> lengths = {3, 1, 2, 5, 4};
  return orderAsMegatron({0, 5, sequence, samples, 1234}, [](std::int64_t i) {
    return lengths[static_cast<std::size_t>(i)];
  });
}

// An independent implementation of the published rules made these orders.
TEST(MegatronOrder, OneEpoch) {
  const MegatronOrder one = order(3);
  EXPECT_EQ(one.epochs, 1);
  EXPECT_THAT(one.documents, ElementsAre(4, 0, 1, 2, 3));
  EXPECT_THAT(one.starts, ElementsAre(SampleStart{0, 0}, SampleStart{1, 0},
                                      SampleStart{3, 0}, SampleStart{4, 2}));
  EXPECT_THAT(one.shuffle, ElementsAre(1, 2, 0));
}

TEST(MegatronOrder, LastEpochApart) {
  const MegatronOrder two = order(4);
  EXPECT_EQ(two.epochs, 2);
  EXPECT_THAT(two.documents, ElementsAre(4, 0, 1, 2, 3, 3, 2, 1, 0, 4));
  EXPECT_THAT(two.starts, ElementsAre(SampleStart{0, 0}, SampleStart{1, 0},
                                      SampleStart{3, 0}, SampleStart{4, 2},
                                      SampleStart{5, 1}, SampleStart{6, 0},
                                      SampleStart{8, 1}, SampleStart{9, 2}));
  EXPECT_THAT(two.shuffle, ElementsAre(0, 2, 1, 6, 3, 5, 4));
}

TEST(MegatronOrder, LastEpochTogether) {
  const MegatronOrder two = order(7);
  EXPECT_EQ(two.epochs, 2);
  EXPECT_THAT(two.documents, ElementsAre(2, 2, 4, 1, 0, 3, 4, 0, 1, 3));
  EXPECT_THAT(two.starts, ElementsAre(SampleStart{0, 0}, SampleStart{2, 0},
                                      SampleStart{3, 0}, SampleStart{5, 0},
                                      SampleStart{5, 4}, SampleStart{6, 3},
                                      SampleStart{8, 0}, SampleStart{9, 3}));
  EXPECT_THAT(two.shuffle, ElementsAre(6, 4, 0, 5, 3, 2, 1));
}

// 15 tokens hold (15 - 1) / 4 = 3 samples, which are the default.
TEST(MegatronOrder, WithoutANumberOfSamplesOneEpoch) {
  EXPECT_EQ(order(0).epochs, 1);
  EXPECT_EQ(order(0).shuffle.size(), 3U);
  // 7 samples of 2 tokens need 7 * 2 + 1 = 15 tokens, which one epoch has.
  EXPECT_EQ(order(7, 2).epochs, 1);
  EXPECT_EQ(order(8, 2).epochs, 2);
}

TEST(MegatronOrder, ShufflesArePermutationsOfEnoughSamples) {
  for (std::int64_t samples = 1; samples < 60; ++samples)
    for (std::int64_t sequence : {1, 2, 3, 5, 14}) {
      SCOPED_TRACE(testing::Message() << samples << " of " << sequence);
      const MegatronOrder made = order(samples, sequence);
      EXPECT_GE(made.shuffle.size(), static_cast<std::size_t>(samples));
      EXPECT_EQ(made.starts.size(), made.shuffle.size() + 1);
      EXPECT_EQ(
          std::set<std::uint32_t>(made.shuffle.begin(), made.shuffle.end())
              .size(),
          made.shuffle.size());
      EXPECT_LT(*std::max_element(made.shuffle.begin(), made.shuffle.end()),
                made.shuffle.size());
    }
}

TEST(MegatronOrder, EmptySequencesAreSkipped) {
  const std::vector<std::int64_t> lengths = {0, 2, 0, 0, 3, 0};
  const MegatronOrder made =
      orderAsMegatron({0, 6, 2, 0, 7}, [&](std::int64_t i) {
        return lengths[static_cast<std::size_t>(i)];
      });
  for (const SampleStart &start : made.starts)
    EXPECT_LT(
        start.offset,
        lengths[static_cast<std::size_t>(made.documents[start.document])]);
  EXPECT_EQ(made.shuffle.size(), 2U);
}

TEST(MegatronOrder, NothingToOrderIsRefused) {
  EXPECT_THROW(orderAsMegatron({0, 3, 4, 1, 7},
                               [](std::int64_t) { return std::int64_t{0}; }),
               std::length_error);
}

} // namespace
} // namespace mtplan::runtime
