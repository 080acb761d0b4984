//===- layouts_test.cpp - Common layouts compute what one rank does -------===//
//
// Compares tp {1,2,4} x dp {1,2} x pp {1,2,4} x sequence splits x ZeRO {0..3} x
// recomputation x schedule with the model on one rank (parity.h). Runs a
// covering array of all pairs, or every layout with MTPLAN_TEST_ALL.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/executable/parity/covering.h"
#include "tests/executable/parity/parity.h"

namespace mtplan::passes {
namespace {

enum Factor { kTp, kDp, kPp, kSequence, kZero, kRecompute, kSchedule };
const std::vector<int> kValues{3, 2, 3, 2, 4, 3, 4};

Drawn drawnOf(const Row &row, std::uint64_t seed) {
  Drawn drawn;
  Parallelism &config = drawn.config;
  config.tp = 1 << row[kTp];
  config.dp = 1 << row[kDp];
  config.pp = 1 << row[kPp];
  config.zeroStage = row[kZero];
  config.zeroRanks = config.dp;
  constexpr Recompute kMade[] = {Recompute::none, Recompute::selective,
                                 Recompute::full};
  config.recompute = kMade[row[kRecompute]];
  config.recomputeLayers = -1;
  constexpr ScheduleKind kKinds[] = {
      ScheduleKind::gpipe, ScheduleKind::oneForwardOneBackward,
      ScheduleKind::zeroBubble, ScheduleKind::interleaved};
  config.schedule = kKinds[row[kSchedule]];
  const bool interleaves = config.schedule == ScheduleKind::interleaved;
  config.virtualStages = interleaves ? 4 / config.pp : 1;
  const int parts = config.pp * config.virtualStages;
  config.layers.assign(static_cast<std::size_t>(parts), 4 / parts);
  drawn.microBatches = interleaves ? config.pp : 1 + static_cast<int>(seed % 3);
  drawn.splits = {Split::column, Split::row, Split::head, Split::vocab};
  if (row[kSequence])
    drawn.splits.push_back(Split::sequence);
  drawn.seed = seed;
  return drawn;
}

// A sequence split needs tensor ranks, ZeRO needs replicas, and the interleaved
// schedule runs on two stages.
bool isLegal(const Row &row) {
  return (row[kSequence] == 0 || row[kTp] > 0) &&
         (row[kZero] == 0 || row[kDp] > 0) &&
         (row[kSchedule] != 3 || row[kPp] == 1);
}

class Layouts : public ::testing::TestWithParam<Family> {};

TEST_P(Layouts, ComputeWhatOneRankDoes) {
  Family family = GetParam();
  family.layers = 4;
  std::vector<Row> rows;
  if (std::getenv("MTPLAN_TEST_ALL")) {
    for (int number = 0; number < 1728; ++number) {
      Row &row = rows.emplace_back();
      for (int rest = number; int count : kValues) {
        row.push_back(rest % count);
        rest /= count;
      }
    }
    std::erase_if(rows, [](const Row &row) { return !isLegal(row); });
  } else {
    rows = coveringRows(kValues, isLegal);
  }
  EXPECT_GE(rows.size(), 16U); // pairs of ZeRO and schedule
  std::uint64_t seed = randomOf(family, 11).word();
  for (const Row &row : rows) {
    Drawn drawn = drawnOf(row, seed++);
    SCOPED_TRACE(textOf(drawn));
    expectParity(family, drawn);
  }
}

const std::string kOff = "\"attention_dropout\": 0.0",
                  kOn = "\"attention_dropout\": 0.1";

INSTANTIATE_TEST_SUITE_P(
    Families, Layouts,
    ::testing::Values(Family{"tiny-gpt2"}, Family{"tiny-bert"},
                      // Eight query heads share two heads of keys and values.
                      Family{"tiny-mistral", kOff, kOn}, Family{"tiny-gptj"}));

// Covers a mixture of experts with ep 2, and an encoder with a decoder.
TEST(Layouts, ExpertsAndEncoderDecoder) {
  auto expectFor = [](Family family, int ep, const std::vector<Split> &splits) {
    family.layers = 4;
    for (int pp : {1, 2})
      for (int zero : {0, 1}) {
        Drawn drawn = drawnOf({1, 1, pp - 1, 0, zero, 0, 1}, 5);
        drawn.config.ep = ep;
        if (family.example == "tiny-t5") // 4 encoder and 4 decoder layers
          drawn.config.layers.assign(static_cast<std::size_t>(pp), 8 / pp);
        drawn.splits = splits;
        SCOPED_TRACE(textOf(drawn));
        expectParity(family, drawn);
      }
  };
  Family mixtral{"tiny-mixtral", kOff, kOn};
  mixtral.splits.insert("expert");
  expectFor(mixtral, 2, {Split::column, Split::row});
  expectFor({"tiny-t5"}, 1, {Split::column, Split::row, Split::head});
}

// In partial FC, ranks split the trunk's samples and the head's classes.
TEST(Layouts, PartialFc) {
  Family family{"native/partial-fc", "", "", 0, false};
  for (std::uint64_t seed : {1, 2, 3, 4, 5, 6})
    for (int dp : {1, 2}) {
      Drawn drawn = drawnOf({2, dp - 1, 0, 0, 0, 0, 1}, seed);
      drawn.config.layers = {10};
      drawn.splits = {Split::batch, Split::vocab};
      SCOPED_TRACE(textOf(drawn));
      expectParity(family, drawn);
    }
}

} // namespace
} // namespace mtplan::passes
