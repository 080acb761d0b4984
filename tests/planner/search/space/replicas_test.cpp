//===- replicas_test.cpp - Groups of replicas, and why they are rejected --===//

#include <algorithm>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/space/parallelism.h"
#include "tests/planner/search/space/space_case.h"

namespace mtplan::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Parallelism replicas(int dp, int ep, int zeroStage) {
  Parallelism config;
  config.dp = dp;
  config.ep = ep;
  config.zeroStage = zeroStage;
  return config;
}

TEST(Replicas, ShareInEqualParts) {
  Machine machine = roundMachine();
  auto ranks = [&](int dp, int ep, std::vector<int> asked) {
    return zeroRanksOf(replicas(dp, ep, 1), machine, {std::move(asked)});
  };
  EXPECT_THAT(ranks(8, 1, {2, 3, 4, 1, 16}), ElementsAre(2, 4));
  EXPECT_THAT(ranks(8, 2, {1, 2, 4, 8}), ElementsAre(4, 8));
  EXPECT_THAT(ranks(12, 2, {3, 4, 6}), ElementsAre(4, 6));
  EXPECT_THAT(ranks(8, 1, {4, 0, 8, 4}), ElementsAre(4, 8));
  EXPECT_THAT(ranks(1, 1, {1, 4}), ElementsAre(1));
  EXPECT_THAT(zeroRanksOf(replicas(8, 1, 0), machine, {{4}}), ElementsAre(1));
  EXPECT_THAT(expertRanks({}, 12, 8), ElementsAre(1, 2, 4));
  EXPECT_THAT(expertRanks({{8, 4, 3, 2}}, 12, 8), ElementsAre(2, 4));
}

// A list is rejected only if no number in it is possible, and the message names
// the nearest possible numbers.
TEST(Replicas, MessagesNameTheNearestPossibleNumbers) {
  Machine machine = roundMachine();
  int refused = 0;
  for (int dp = 1; dp <= 24; ++dp)
    for (int experts : {1, 6, 8})
      for (int asked = 1; asked <= 26; ++asked) {
        SCOPED_TRACE(testing::Message() << "dp " << dp << ", experts "
                                        << experts << ", asked " << asked);
        std::string error = errorOfExpertRanks({{asked}}, experts, dp);
        EXPECT_EQ(error.empty(), dp % asked == 0 && experts % asked == 0);
        if (!error.empty() && experts > 1) {
          int nearest = std::stoi(error.substr(error.rfind(": ") + 2));
          EXPECT_THAT(errorOfExpertRanks({{nearest}}, experts, dp), IsEmpty());
        }
        std::vector<int> eps = expertRanks({}, experts, dp);
        bool mayBe = std::ranges::any_of(eps, [&](int ep) {
          return !zeroRanksOf(replicas(dp, ep, 2), machine, {{asked}}).empty();
        });
        error = errorOfZeroRanks({{asked}}, eps, dp);
        EXPECT_EQ(error.empty(), mayBe);
        if (!error.empty()) {
          ++refused;
          int nearest = std::stoi(error.substr(error.rfind(": ") + 2));
          EXPECT_THAT(errorOfZeroRanks({{nearest}}, eps, dp), IsEmpty());
        }
      }
  EXPECT_GT(refused, 500);
}

// A mesh is rejected once, for all configurations on it.
TEST(Replicas, MeshesAreRejectedOnce) {
  Case drawn = drawCase(1);
  openEverything(drawn, 8.0);
  drawn.options.devices = drawn.options.globalBatch = 8;
  drawn.options.zeroStage = {{1}};
  drawn.options.zeroRanks = {{1, 3}};
  auto rejectionsOf = [&] {
    std::vector<Rejection> rejections;
    std::vector<Parallelism> space =
        enumerateSpace(drawn.model, drawn.machine, drawn.options, rejections);
    std::vector<std::tuple<int, int, int, int>> meshes;
    for (const Rejection &one : rejections) {
      EXPECT_EQ(one.reason, Rejection::Reason::divisor);
      EXPECT_EQ(one.config.microBatch, 0);
      meshes.emplace_back(one.config.tp, one.config.pp, one.config.cp,
                          one.config.dp);
    }
    std::ranges::sort(meshes);
    EXPECT_EQ(std::ranges::adjacent_find(meshes), meshes.end());
    for (const Parallelism &config : space)
      EXPECT_FALSE(std::ranges::binary_search(
          meshes, std::tuple(config.tp, config.pp, config.cp, config.dp)));
    return rejections;
  };
  auto wordsOf = [](const std::vector<Rejection> &rejections, int dp) {
    for (const Rejection &one : rejections)
      if (one.config.dp == dp)
        return one.detail;
    return std::string();
  };
  drawn.options.ep = {{1}};
  EXPECT_EQ(wordsOf(rejectionsOf(), 8),
            "zero-ranks 1 shards nothing over the dp 8 replicas, which is zero "
            "0, zero-ranks 3 does not divide dp 8; nearest allowed: 2 and 4");
  drawn.options.zeroRanks = {{2}};
  drawn.options.ep = {{2}};
  std::vector<Rejection> rejections = rejectionsOf();
  EXPECT_EQ(wordsOf(rejections, 4),
            "zero-ranks 2 must be more than ep 2 and a multiple of it; nearest "
            "allowed: 4");
  EXPECT_THAT(wordsOf(rejections, 1),
              testing::StartsWith("dp 1 is not divisible by ep 2; nearest"));
  // If all options are open, no rejection is about numbers of ranks.
  drawn.options.ep = drawn.options.zeroRanks = drawn.options.zeroStage = {};
  for (const Rejection &one : rejectionsOf())
    EXPECT_THAT(one.detail, testing::Not(testing::HasSubstr("ranks")));
}

} // namespace
} // namespace mtplan::planner
