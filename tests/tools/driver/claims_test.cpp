//===- claims_test.cpp - Reasons in reports are true ----------------------===//

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tools/driver/pipeline.h"
#include "tools/driver/read_flags.h"
#include "tools/text/pin_text.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using planner::PlannedCandidate;
using planner::Rejection;

PlanRequest requestFor(const char *model, std::int64_t gpus, std::int64_t top) {
  std::vector<std::string> errors;
  Flags flags;
  flags.texts = {{"MODEL", examplePath(model)},
                 {"--open", "none"},
                 {"--tolerance", "0"},
                 {"--splits", "all"}};
  PlanRequest request = readFlags(flags, errors);
  request.gpus = gpus;
  request.top = top;
  return request;
}

class Claims : public testing::TestWithParam<std::tuple<const char *, int>> {};

// Every candidate is counted once as a plan or a rejection. The bound that
// rejects a mesh does not exceed the step of the best plan that a search of
// this mesh alone finds.
TEST_P(Claims, HoldForEachMeshAlone) {
  auto [model, top] = GetParam();
  PlanRequest request = requestFor(model, 32, top);
  PlanOutcome outcome = plan(request);
  ASSERT_NE(outcome.best(), nullptr);
  std::map<std::pair<int, int>, double> bound;
  std::size_t accounted = outcome.result.plans.size();
  for (const Rejection &rejection : outcome.result.rejections) {
    if (rejection.config.microBatch == 0)
      continue;
    ++accounted;
    double &least =
        bound.try_emplace({rejection.config.dp, rejection.config.tp}, 1e300)
            .first->second;
    if (rejection.reason == Rejection::Reason::bound)
      least = std::min(least, rejection.bound.value);
  }
  EXPECT_EQ(accounted, static_cast<std::size_t>(outcome.result.candidates));
  for (const PlannedCandidate &planned : outcome.result.plans)
    bound.erase({planned.config.dp, planned.config.tp});
  for (auto [mesh, least] : bound) {
    PlanRequest alone = request;
    alone.dp = mesh.first;
    alone.tp = mesh.second;
    alone.top = 1;
    PlanOutcome best = plan(alone);
    if (best.best()) {
      EXPECT_LE(least, best.best()->time.step.value * (1 + 1e-9))
          << "dp " << mesh.first << " x tp " << mesh.second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Claims,
                         testing::Combine(testing::Values("bert-336m",
                                                          "gpt2-8.3b"),
                                          testing::Values(1, 2, 5)));

// A pinned split excludes meshes without tensor ranks, unless there is one GPU.
TEST(Claims, APinnedSplitIsUsed) {
  PlanRequest request = requestFor("bert-336m", 8, 1);
  std::vector<std::string> errors;
  request.pins = parsePins({"h.*.mlp.fc1=column"}, errors);
  PlanOutcome outcome = plan(request);
  ASSERT_NE(outcome.best(), nullptr);
  EXPECT_GT(outcome.best()->config.tp, 1);
  EXPECT_THAT(outcome.problem->notes,
              testing::Each(testing::Not(testing::HasSubstr("with tp 1"))));
  request.gpus = 1;
  EXPECT_THAT(
      plan(request).problem->notes,
      testing::Contains(testing::HasSubstr("with tp 1 no tensor is split")));
}

// The report names the pin without which a plan exists.
TEST(Claims, ErrorsNameImpossiblePins) {
  Ran ran =
      runExample("bert-336m", {"--gpus", "8", "--tp", "8", "--micro-batch", "1",
                               "--pin", "h.*.attn.core=batch"});
  EXPECT_EQ(ran.code, kNothingFits);
  EXPECT_THAT(ran.out, testing::HasSubstr("No plan obeys the pins, of"));
  EXPECT_THAT(ran.out,
              testing::HasSubstr("without --pin 'h.*.attn.core=batch' fits"));
}

// Without column splits, the embedding needs the tied table unsharded, but the
// head shards the table's rows. The error names the conflict and a remedy.
TEST(Claims, ErrorsNameSplitsWithoutALegalPlan) {
  Ran ran = runExample("tiny-gpt2",
                       {"--gpus", "2", "--tp", "2", "--splits", "row,head"});
  EXPECT_EQ(ran.code, kNothingFits);
  EXPECT_THAT(ran.out,
              testing::HasSubstr("No legal plan with --splits row,head, of"));
  EXPECT_THAT(ran.out, testing::Not(testing::HasSubstr("pins")));
  EXPECT_THAT(ran.out, testing::HasSubstr("\n  --splits row,head,column fits"));
  EXPECT_THAT(ran.out,
              testing::HasSubstr("\n  lm_head has no legal strategy; --pin "
                                 "'lm_head=replicated' fits: tp 2"));
}

TEST(Claims, TextualIrKeepsItsTypes) {
  Ran printed = runExample("tiny-gpt2", {"--gpus", "1", "--precision", "fp32",
                                         "--emit", "mlir", "--stage", "model"});
  ASSERT_EQ(printed.code, kDone);
  std::string path = testing::TempDir() + "mtplan_types.mlir";
  std::vector<std::string> errors;
  ASSERT_TRUE(writeTextFile(path, printed.out, errors));
  Ran planned({path, "--gpus", "1"});
  EXPECT_EQ(planned.code, kDone);
  EXPECT_THAT(planned.out, testing::HasSubstr("fp32"));
  Ran refused({path, "--gpus", "1", "--precision", "bf16"});
  EXPECT_EQ(refused.code, kBadInput);
  EXPECT_THAT(refused.err, testing::HasSubstr("parameters are f32, not bf16"));
}

// The workspace includes the inputs, so it grows with the samples.
TEST(Claims, InputsTakeMemory) {
  auto workspace = [](std::int64_t samples) {
    PlanRequest request;
    request.model = examplePath("native/mlp");
    request.hardware = "dgx-a100-80g";
    request.splits = allSplits();
    request.gpus = 1;
    request.microBatch = request.globalBatch = samples;
    PlanOutcome outcome = plan(request);
    const planner::Tensor *input = nullptr;
    for (const planner::Tensor &tensor :
         outcome.problem->graph.segments[0].tensors)
      if (tensor.kind == planner::TensorKind::input && !input)
        input = &tensor;
    double bytes = input->elementBytes;
    for (std::int64_t size : input->shape)
      bytes *= static_cast<double>(size);
    EXPECT_GE(outcome.best()->memory.workspace.value,
              bytes * static_cast<double>(samples));
    return outcome.best()->memory.workspace.value;
  };
  EXPECT_GT(workspace(64), workspace(32));
}

} // namespace
} // namespace mtplan::tools
