//===- partial_fc_test.cpp - A trunk of replicas, a head in pieces --------===//
//
// InsightFace's partial FC, on one mesh: replicas of a trunk split the classes
// of their head between them. Features are gathered before it, softmax takes
// three reductions of a number per sample, and gradients of the features are
// summed and scattered back. It is found, not written down.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>

#include "tests/tools/command_testing.h"
#include "tests/tools/planning.h"

namespace mtplan::tools {
namespace {

using planner::LedgerPhase;

// 64 samples on each of 8 GPUs; features of 512, in two bytes.
constexpr double kPiece = 64 * 512 * 2, kAll = 8 * kPiece;
constexpr double kPerSample = 512 * 4; // a float of every sample

PlanRequest partialFc(const std::vector<std::string> &pins = {}) {
  PlanRequest request = exampleRequest("native/partial-fc", 8);
  request.microBatch = 512;
  request.globalBatch = 4096;
  std::vector<std::string> errors;
  request.pins = planner::parsePins(pins, errors);
  EXPECT_TRUE(errors.empty());
  return request;
}

TEST(PartialFc, TheTrunkIsReplicatedAndTheHeadSplit) {
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

// As the loss takes samples in pieces, the last of the three is not gathered.
TEST(PartialFc, GathersFeaturesOnceAndScattersTheirGradients) {
  PlanOutcome outcome = planned(partialFc());
  EXPECT_EQ(censusOf(outcome, LedgerPhase::forward),
            (Census{{{"all_gather", kPiece}, 1},
                    {{"reduce_scatter", kPerSample}, 3},
                    {{"all_gather", kPerSample / 8}, 2}}));
  EXPECT_EQ(censusOf(outcome, LedgerPhase::backward),
            (Census{{{"reduce_scatter", kAll}, 1}}));
}

// InsightFace's own three reductions, where every rank is to have the loss.
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
