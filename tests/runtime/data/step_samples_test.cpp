//===- step_samples_test.cpp - Inputs and targets of a step ---------------===//

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/step_samples.h"
#include "tests/runtime/data/data_files.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Gives sample k the tokens 10 k, 10 k + 1, ...
class Counting final : public Dataset {
public:
  explicit Counting(std::int64_t sequence) { settings.sequence = sequence; }
  const std::string &name() const override { return label; }
  std::string identity() const override { return label; }
  std::int64_t samplesPerEpoch() const override { return 1000; }
  std::optional<std::int64_t> samples() const override { return std::nullopt; }
  void sample(std::int64_t index,
              std::span<std::int32_t> tokens) const override {
    std::iota(tokens.begin(), tokens.end(),
              static_cast<std::int32_t>(10 * index));
  }

private:
  const std::string label = "counting";
};

StepSamples stepOf(const Objective &objective, std::int64_t sequence,
                   std::int64_t batch, std::int64_t step) {
  return StepReader(
             std::make_shared<Counting>(objective.sampleSequence(sequence)),
             objective, sequence, batch)
      .read(step);
}

TEST(StepSamples, StepNHasSamplesNTimesB) {
  const StepSamples step = stepOf({}, 3, 2, 4);
  EXPECT_THAT(step.ids, ElementsAre(80, 81, 82, 90, 91, 92));
  EXPECT_THAT(step.targets, ElementsAre(81, 82, 83, 91, 92, 93));
  EXPECT_EQ(step.count, 6);
  EXPECT_THAT(step.types, IsEmpty());
  EXPECT_THAT(step.decoderIds, IsEmpty());
}

// Steps 0 to 2 have 4 samples each. Later steps, from sample 12 on, have 3.
TEST(StepSamples, RunMayContinueWithAnotherBatch) {
  const StepReader reader(std::make_shared<Counting>(1), {}, 1, 3);
  const StepSamples fifth = reader.read(4, 12 + 3);
  EXPECT_EQ(fifth.step, 4);
  EXPECT_THAT(fifth.ids, ElementsAre(150, 160, 170));
}

TEST(StepSamples, NothingIsPredictedAcrossTheEndOfADocument) {
  Objective objective;
  objective.endOfDocument = 81;
  const StepSamples step = stepOf(objective, 3, 2, 4);
  EXPECT_THAT(step.ids, ElementsAre(80, 81, 82, 90, 91, 92));
  EXPECT_THAT(step.targets, ElementsAre(81, -1, 83, 91, 92, 93));
  EXPECT_EQ(step.count, 5);
}

TEST(StepSamples, ContinuationSplitsOneSample) {
  Objective objective;
  objective.kind = Objective::Kind::continuation;
  objective.decoderSequence = 2;
  objective.startToken = 7;
  const StepSamples step = stepOf(objective, 3, 1, 5);
  EXPECT_THAT(step.ids, ElementsAre(50, 51, 52));
  EXPECT_THAT(step.decoderIds, ElementsAre(7, 53));
  EXPECT_THAT(step.targets, ElementsAre(53, 54));
  EXPECT_EQ(step.count, 2);
}

Objective masked() {
  Objective objective;
  objective.kind = Objective::Kind::masked;
  objective.maskToken = 100000;
  objective.vocabulary = 500;
  objective.typeRows = 2;
  return objective;
}

TEST(StepSamples, MaskedHasTheSharesOfBert) {
  const std::int64_t s = 50, batch = 400;
  const StepSamples step = stepOf(masked(), s, batch, 0);
  int targets = 0, hidden = 0, replaced = 0, kept = 0;
  for (std::size_t i = 0; i < step.ids.size(); ++i) {
    const auto original =
        static_cast<std::int32_t>(10 * (i / static_cast<std::size_t>(s)) +
                                  i % static_cast<std::size_t>(s));
    if (step.targets[i] < 0) {
      ASSERT_EQ(step.ids[i], original);
      continue;
    }
    ASSERT_EQ(step.targets[i], original);
    ++targets;
    if (step.ids[i] == 100000)
      ++hidden;
    else if (step.ids[i] == original)
      ++kept;
    else {
      ++replaced;
      ASSERT_LT(step.ids[i], 500);
    }
  }
  EXPECT_EQ(step.count, targets);
  // The tolerances are four standard errors of 20 000 and of 3 000 draws.
  EXPECT_NEAR(targets, 3000, 202);
  EXPECT_NEAR(hidden, 0.8 * targets, 88);
  EXPECT_NEAR(replaced, 0.1 * targets, 66);
  EXPECT_NEAR(kept, 0.1 * targets, 66);
}

TEST(StepSamples, MaskingDependsOnTheSampleAlone) {
  const StepSamples eight = stepOf(masked(), 10, 8, 1);
  for (std::int64_t row = 0; row < 8; ++row) {
    const StepSamples one = stepOf(masked(), 10, 1, 8 + row);
    for (std::size_t i = 0; i < 10; ++i) {
      const std::size_t at = static_cast<std::size_t>(10 * row) + i;
      EXPECT_EQ(one.ids[i], eight.ids[at]);
      EXPECT_EQ(one.targets[i], eight.targets[at]);
      EXPECT_EQ(one.types[i], i < 5 ? 0 : 1);
    }
  }
  Objective other = masked();
  other.seed = 5;
  EXPECT_NE(stepOf(other, 10, 8, 1).targets, eight.targets);
}

//===----------------------------------------------------------------------===//
// Reading ahead
//===----------------------------------------------------------------------===//

StepSamples numbered(std::int64_t step) {
  StepSamples samples;
  samples.step = step;
  return samples;
}

TEST(Prefetcher, GivesEveryTakerEveryStep) {
  Prefetcher ahead(numbered, 3, 40, 3, 2);
  std::vector<std::thread> ranks;
  ranks.reserve(3);
  std::vector<int> good(3);
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      for (std::int64_t step = 3; step < 40; ++step)
        good[static_cast<std::size_t>(rank)] += ahead.take(step)->step == step;
    });
  for (std::thread &rank : ranks)
    rank.join();
  EXPECT_THAT(good, ElementsAre(37, 37, 37));
}

TEST(Prefetcher, KeepsAtMostDepthSteps) {
  std::atomic<std::int64_t> latest = -1;
  Prefetcher ahead(
      [&](std::int64_t step) {
        latest = step;
        return numbered(step);
      },
      0, 100, 2, 3);
  // The second taker has taken no step, so only steps 0, 1, 2 may be read.
  for (std::int64_t step = 0; step < 3; ++step)
    ahead.take(step);
  EXPECT_LE(latest, 2);
  ahead.take(0); // now step 3 may be read
  EXPECT_EQ(ahead.take(3)->step, 3);
  EXPECT_LE(latest, 3);
}

TEST(Prefetcher, RethrowsReadErrorsFromTheirStepOn) {
  Prefetcher ahead(
      [](std::int64_t step) {
        if (step == 2)
          throw DataError("corpus", 7, "is broken");
        return numbered(step);
      },
      0, 100, 2, 2);
  for (int taker = 0; taker < 2; ++taker)
    EXPECT_EQ(ahead.take(0)->step, 0);
  for (int taker = 0; taker < 2; ++taker)
    EXPECT_EQ(ahead.take(1)->step, 1);
  for (int taker = 0; taker < 2; ++taker)
    EXPECT_EQ(messageOf<DataError>([&] { ahead.take(2); }),
              "corpus: byte 7: is broken");
  EXPECT_EQ(messageOf<DataError>([&] { ahead.take(3); }),
            "corpus: byte 7: is broken");
}

TEST(Prefetcher, StopReleasesWaiters) {
  Prefetcher ahead(numbered, 0, 1);
  ahead.take(0);
  std::thread waiter([&] { EXPECT_EQ(ahead.take(1), nullptr); });
  ahead.stop();
  waiter.join();
}

} // namespace
} // namespace mtplan::runtime
