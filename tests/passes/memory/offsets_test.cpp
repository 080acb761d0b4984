//===- offsets_test.cpp - Offsets for values with lifetimes ---------------===//

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "passes/memory/offsets.h"

namespace mtplan::passes {
namespace {

TEST(Offsets, AreSharedByBuffersWithDisjointLifetimes) {
  Offsets offsets = assignOffsets({{0, 1, 100}, {2, 3, 60}, {1, 2, 50}}, 10);
  EXPECT_EQ(offsets.at, (std::vector<std::int64_t>{0, 0, 100}));
  EXPECT_EQ(offsets.total, 150);
  EXPECT_EQ(peakOf({{0, 1, 100}, {2, 3, 60}, {1, 2, 50}}, 10), 150);
}

// Once the second and the fourth buffer are dead, 90 bytes are free at 100 and
// 70 at 270.
TEST(Offsets, TheTightestGapIsTaken) {
  std::vector<Lifetime> lives{{0, 9, 100}, {0, 2, 90}, {0, 9, 80},
                              {0, 2, 70},  {0, 9, 60}, {5, 6, 50}};
  Offsets offsets = assignOffsets(lives, 10);
  EXPECT_EQ(offsets.at,
            (std::vector<std::int64_t>{0, 100, 190, 270, 340, 270}));
  EXPECT_EQ(offsets.total, 400);
  EXPECT_EQ(peakOf({{0, 0, 1}, {0, 0, 11}}, 10), 30); // rounded up, each
}

// A buffer with a fixed offset keeps it, and its memory is reused after its
// last use.
TEST(Offsets, FixedOnesStay) {
  Offsets offsets =
      assignOffsets({{0, 3, 100, 50}, {0, 9, 45}, {4, 5, 40}, {2, 3, 60}}, 10);
  EXPECT_EQ(offsets.at, (std::vector<std::int64_t>{50, 0, 50, 150}));
  EXPECT_EQ(offsets.total, 210);
}

// The third and the first buffer are contiguous, in that order, and both are
// reserved while either is alive.
TEST(Offsets, RowsLieOneAfterTheOther) {
  const std::vector<Lifetime> lives{{0, 1, 35}, {2, 3, 50}, {3, 4, 35}};
  EXPECT_EQ(assignOffsets(lives, 10).at, (std::vector<std::int64_t>{0, 0, 50}));
  const Offsets offsets = assignOffsets(lives, {{2, 0}}, 10);
  EXPECT_EQ(offsets.at, (std::vector<std::int64_t>{40, 80, 0}));
  EXPECT_EQ(offsets.total, 130);
  EXPECT_EQ(assignOffsets(lives, {}, 10).at, assignOffsets(lives, 10).at);
}

// Buffers that are alive at the same time do not overlap, all offsets are
// aligned, and the total is not below the peak.
TEST(Offsets, RandomLivesDoNotOverlap) {
  std::mt19937_64 random(1);
  double worst = 0.0;
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> lives(1 + random() % 40);
    for (Lifetime &life : lives) {
      life.first = static_cast<std::int64_t>(random() % 30);
      life.last = life.first + static_cast<std::int64_t>(random() % 10);
      life.bytes = 1 + static_cast<std::int64_t>(random() % 5000);
    }
    if (round % 2) // fixed, one after the other
      for (std::size_t i = 0; i < lives.size() / 4; ++i)
        lives[i].fixedAt = static_cast<std::int64_t>(i) * 5120;
    Offsets offsets = assignOffsets(lives, 256);
    std::int64_t end = 0;
    for (std::size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(offsets.at[i] % 256, 0);
      end = std::max(end, offsets.at[i] + roundedUp(lives[i].bytes, 256));
      for (std::size_t j = 0; j < i; ++j) {
        bool meet =
            lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
        bool overlap = offsets.at[i] < offsets.at[j] + lives[j].bytes &&
                       offsets.at[j] < offsets.at[i] + lives[i].bytes;
        ASSERT_FALSE(meet && overlap) << "round " << round;
      }
    }
    EXPECT_EQ(end, offsets.total);
    EXPECT_GE(offsets.total, peakOf(lives, 256));
    if (round % 2 == 0)
      worst =
          std::max(worst, double(offsets.total) / double(peakOf(lives, 256)));
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LT(worst, 1.35);
}

} // namespace
} // namespace mtplan::passes
