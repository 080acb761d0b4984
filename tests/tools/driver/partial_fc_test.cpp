//===- partial_fc_test.cpp - Replicated trunk, sharded head ---------------===//
//
// In InsightFace's partial FC on one mesh, replicas of a trunk split the
// classes of their head. Features are gathered before the head, softmax has
// three reductions of a number per sample, and feature gradients are
// reduce-scattered. The planner must find this plan by itself.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>

#include "tests/tools/command_testing.h"
#include "tests/tools/planning.h"
#include "tools/text/pin_text.h"

namespace mtplan::tools {
namespace {

using planner::LedgerPhase;

// Each of 8 GPUs has 64 samples; features have 512 elements of two bytes.
constexpr double kPiece = 64 * 512 * 2, kAll = 8 * kPiece;
constexpr double kPerSample = 512 * 4; // one float per sample

PlanRequest partialFc(const std::vector<std::string> &pins = {}) {
  PlanRequest request = exampleRequest("native/partial-fc", 8);
  request.microBatch = 512;
  request.globalBatch = 4096;
  std::vector<std::string> errors;
  request.pins = parsePins(pins, errors);
  EXPECT_TRUE(errors.empty());
  return request;
}

TEST(PartialFc, TheTrunkIsReplicatedAndTheHeadSharded) {
  PlanOutcome outcome = planned(partialFc());
  EXPECT_TRUE(outcome.result.optimal);
  const auto &graph = outcome.problem->graph;
  for (const planner::SegmentPlan &run : outcome.best()->plans()) {
    const auto &segment = graph.segments[static_cast<std::size_t>(run.segment)];
    for (std::size_t o = 0; o < segment.ops.size(); ++o) {
      const planner::Op &op = segment.ops[o];
      std::string word =
          planner::wordOf(op, run.strategies[o], planner::kTensorAxis);
      if (segment.name != "head" || op.name == "loss")
        EXPECT_EQ(word, "batch") << op.name;
      else
        EXPECT_EQ(word, "vocab") << op.name;
    }
  }
}

// The loss reads sharded samples, so the last of the three reductions is a
// reduce-scatter.
TEST(PartialFc, GathersFeaturesOnceAndScattersTheirGradients) {
  PlanOutcome outcome = planned(partialFc());
  EXPECT_EQ(censusOf(outcome, LedgerPhase::forward),
            (Census{{{"all_gather", kPiece}, 1},
                    {{"reduce_scatter", kPerSample}, 3},
                    {{"all_gather", kPerSample / 8}, 2}}));
  EXPECT_EQ(censusOf(outcome, LedgerPhase::backward),
            (Census{{{"reduce_scatter", kAll}, 1}}));
}

// If every rank needs the loss, there are InsightFace's three all-reduces.
TEST(PartialFc, WithTheLossEverywhereThereAreThreeAllReduces) {
  PlanOutcome outcome = planned(
      partialFc({"loss=replicated", "loss.pick=vocab", "loss.grad=vocab"}));
  EXPECT_EQ(
      censusOf(outcome, LedgerPhase::forward),
      (Census{{{"all_gather", kPiece}, 1}, {{"all_reduce", kPerSample}, 3}}));
  EXPECT_EQ(censusOf(outcome, LedgerPhase::backward),
            (Census{{{"reduce_scatter", kAll}, 1}}));
}

TEST(PartialFc, IsFasterThanReplicasOrPiecesAlone) {
  double found = planned(partialFc()).best()->time.step.value;
  EXPECT_LT(found, planned(partialFc({"faces=batch"})).best()->time.step.value);
  EXPECT_LT(found,
            planned(partialFc({"trunk.*.fc1=column"})).best()->time.step.value);
  PlanRequest replicas = partialFc();
  replicas.tp = 1;
  replicas.dp = 8;
  replicas.microBatch = 64;
  EXPECT_LT(found, planned(replicas).best()->time.step.value);
}

TEST(PartialFc, IsProved) {
  Ran ran = runExample("native/partial-fc",
                       {"--gpus", "8", "--tp", "8", "--micro-batch", "512",
                        "--global-batch", "4096", "--top", "1", "--verify"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, testing::HasSubstr("Proof  holds: 29 tensors on 8"));
}

} // namespace
} // namespace mtplan::tools
