//===- decision_flow_test.cpp - Hugging Face's advice as tests ------------===//
//
// "Efficient training on multiple GPUs" (Hugging Face, v4.40) advises what to
// try in which situation. docs/closed-forms.md numbers its rules K1 to K13. The
// planner, with everything open, must choose the same. Tensor parallelism is
// Megatron-LM's, as in that advice.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>

#include "tests/tools/command_testing.h"
#include "tests/tools/planning.h"
#include "tools/report/report.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using planner::PlannedCandidate;
using planner::Recompute;

PlanRequest openRequest(const std::string &model, std::int64_t gpus,
                        const std::string &hardware) {
  PlanRequest request;
  request.model = model.front() == '/' ? model : examplePath(model);
  request.hardware = hardware;
  request.gpus = gpus;
  request.splits = megatronSplits();
  request.pp = request.zeroStage = {};
  request.recompute = {};
  request.overlaps = planner::Overlaps{};
  request.top = 1;
  return request;
}

double stepOf(const PlanRequest &request) {
  return planned(request).best()->time.step.value;
}

// Writes a GPT-2 config with these sizes.
std::string modelFile(const std::string &name, int layers, int hidden,
                      int heads, int positions) {
  std::string path = testing::TempDir() + "mtplan_" + name + ".json";
  std::vector<std::string> errors;
  EXPECT_TRUE(writeTextFile(
      path,
      "{\"model_type\": \"gpt2\", \"name\": \"" + name + "\", \"n_layer\": " +
          std::to_string(layers) + ", \"n_embd\": " + std::to_string(hidden) +
          ", \"n_head\": " + std::to_string(heads) +
          ", \"n_positions\": " + std::to_string(positions) +
          ", \"vocab_size\": 51200, \"global_batch_size\": 64}",
      errors));
  return path;
}

// Rule K1: if the model fits one GPU, the plan has neither ZeRO, recomputation
// nor collectives.
TEST(DecisionFlow, OneGpuThatFitsNeedsNothing) {
  PlanOutcome outcome = planned(openRequest("bert-336m", 1, "dgx-a100-80g"));
  const PlannedCandidate &best = *outcome.best();
  EXPECT_EQ(best.config.devices(), 1);
  EXPECT_EQ(best.config.zeroStage, 0);
  EXPECT_EQ(best.config.recompute, Recompute::none);
  EXPECT_TRUE(ledger(outcome).empty());
}

// Rule K2: one GPU cannot hold 16 bytes for each of 8.3 billion weights, so the
// plan offloads the optimizer to the host. For each weight, 4 bytes stay on the
// GPU: the weight and its gradient. A small model is not offloaded.
TEST(DecisionFlow, OneGpuThatDoesNotFitOffloads) {
  PlanRequest request = openRequest("gpt2-8.3b", 1, "dgx-a100-80g");
  request.software = "megatron-2020"; // gradients of 2 bytes
  PlanOutcome outcome = plan(request);
  EXPECT_EQ(outcome.best(), nullptr);
  ASSERT_TRUE(outcome.result.nearest);
  EXPECT_GT(outcome.result.nearest->memory.total().value,
            16.0 * 8'317'040'640.0);
  request.offload = {};
  PlanOutcome offloaded = planned(request);
  const PlannedCandidate &best = *offloaded.best();
  EXPECT_EQ(best.config.offload, planner::Offload::optimizer);
  const planner::MemoryUse &memory = best.memory;
  EXPECT_NEAR((memory.parameters + memory.gradients).value,
              4.0 * 8'317'040'640.0, 1e9);
  EXPECT_NEAR(memory.host.value, 16.0 * 8'317'040'640.0, 1e9);
  PlanRequest small = openRequest("bert-336m", 1, "dgx-a100-80g");
  small.offload = {};
  EXPECT_EQ(planned(small).best()->config.offload, planner::Offload::none);
  // Offloading is among the remedies where the default does not fit.
  Ran ran = runExample("gpt2-8.3b", {"--gpus", "1", "--hardware",
                                     "dgx-a100-80g", "--global-batch", "16"});
  EXPECT_EQ(ran.code, kNothingFits);
  EXPECT_THAT(ran.out, testing::HasSubstr("  --offload optimizer fits: "));
}

// Returns a request for a layer with 7.2 billion weights, a third of them in
// one matrix.
PlanRequest wideLayer(std::int64_t gpus) {
  PlanRequest request =
      openRequest(modelFile("wide", 1, 24576, 192, 1024), gpus, "dgx-a100-80g");
  request.zeroStage = {{3}};
  request.recompute = {{Recompute::full}};
  request.pp = {{1}};
  request.tp = 1;
  request.microBatch = 1;
  return request;
}

// Rule K3: if one GPU lacks the memory to use the largest weight untiled, the
// plan offloads the optimizer and uses that weight in tiles. The report names
// the weight.
TEST(DecisionFlow, OneGpuThatALayerDoesNotFitTilesIt) {
  PlanRequest request = wideLayer(1);
  request.software = "megatron-2020"; // gradients of 2 bytes
  request.globalBatch = 1;
  request.offload = {};
  // The memory holds 4 bytes for each of 8.5 billion weights, and one more
  // gradient of the largest weight (4.8 GB), but not two.
  request.memory = planner::Bytes{46e9};
  EXPECT_EQ(plan(request).best(), nullptr);
  request.tiles = {};
  PlanOutcome outcome = planned(request);
  const PlannedCandidate &best = *outcome.best();
  EXPECT_GT(best.config.tiles, 1);
  EXPECT_EQ(best.config.offload, planner::Offload::optimizer);
  EXPECT_THAT(screenOf(outcome, {}),
              testing::HasSubstr("in tiles: h.*.mlp.fc1.weight in "));
}

// Rule K4: on one node where a replica fits, data parallelism is best. Every
// ZeRO stage is within 5 % of the best plan; tensor and pipeline ranks are not
// needed.
TEST(DecisionFlow, OneNodeThatFitsIsDataParallel) {
  PlanRequest request = openRequest("bert-336m", 8, "dgx-a100-80g");
  PlanOutcome outcome = planned(request);
  const PlannedCandidate &best = *outcome.best();
  EXPECT_EQ(best.config.dp, 8);
  EXPECT_EQ(best.config.tp, 1);
  EXPECT_EQ(best.config.pp, 1);
  for (int stage : {0, 1, 2, 3}) {
    request.zeroStage = {{stage}};
    EXPECT_LE(stepOf(request), 1.05 * best.time.step.value) << stage;
  }
}

// Rule K4: if ZeRO 1 gains less than the tolerance, and memory is ample, the
// plan is plain data parallelism.
TEST(DecisionFlow, ZeroMustGainMoreThanTheTolerance) {
  PlanRequest request = openRequest("bert-336m", 8, "dgx-a100-80g");
  request.zeroStage = {{0, 1}};
  request.tolerance = 0.0;
  request.microBatch = 16;
  const double fastest = stepOf(request);
  EXPECT_EQ(planned(request).best()->config.zeroStage, 1);
  request.zeroStage = {{0}};
  const double gain = stepOf(request) / fastest - 1;
  EXPECT_GT(gain, 0);
  request.zeroStage = {{0, 1}};
  request.tolerance = 0.9 * gain;
  EXPECT_EQ(planned(request).best()->config.zeroStage, 1);
  request.tolerance = 1.1 * gain;
  EXPECT_EQ(planned(request).best()->config.zeroStage, 0);
}

// Rule K5: on one node where a replica does not fit, pipeline, ZeRO and tensor
// ranks are within 25 % of each other with NVLink. Over PCIe, the pipeline is
// faster than tensor ranks.
TEST(DecisionFlow, OneNodeThatDoesNotFitDependsOnItsLinks) {
  auto alone = [](const char *hardware, int tp, int pp, int zero) {
    PlanRequest request = openRequest("gpt2-8.3b", 8, hardware);
    request.splits = allSplits(); // these include sequence parallelism
    request.tp = tp;
    request.pp = {{pp}};
    request.dp = 8 / tp / pp;
    request.zeroStage = {{zero}};
    request.schedule = {};
    return stepOf(request);
  };
  PlanRequest ddp = openRequest("gpt2-8.3b", 8, "dgx-a100-80g");
  ddp.dp = 8;
  ddp.tp = 1;
  ddp.pp = {{1}};
  ddp.zeroStage = {{0}};
  EXPECT_EQ(plan(ddp).best(), nullptr);
  double pipeline = alone("dgx-a100-80g", 1, 8, 0);
  double zero = alone("dgx-a100-80g", 1, 1, 3);
  double tensor = alone("dgx-a100-80g", 8, 1, 0);
  EXPECT_LE(std::max({pipeline, zero, tensor}),
            1.25 * std::min({pipeline, zero, tensor}));
  EXPECT_LT(alone("pcie-a100-80g", 1, 8, 0), alone("pcie-a100-80g", 8, 1, 0));
  // Over PCIe, Megatron-LM's splits take over 1.5 times the pipeline's time.
  PlanRequest megatron = openRequest("gpt2-8.3b", 8, "pcie-a100-80g");
  megatron.tp = 8;
  EXPECT_GT(stepOf(megatron), 1.5 * alone("pcie-a100-80g", 1, 8, 0));
}

// Rule K6: there are no more tensor ranks than GPUs per node: doubling them
// beyond a node costs more than doubling them within one.
TEST(DecisionFlow, TensorRanksStayInANode) {
  auto step = [](int tp) {
    PlanRequest request = openRequest("gpt2-8.3b", 16, "dgx-a100-80g");
    request.tp = tp;
    request.pp = {{1}};
    return stepOf(request);
  };
  double four = step(4), eight = step(8), sixteen = step(16);
  EXPECT_GT(sixteen - eight, eight - four);
  EXPECT_GT(sixteen, 1.3 * eight);
  PlanRequest open = openRequest("gpt2-8.3b", 16, "dgx-a100-80g");
  EXPECT_LE(planned(open).best()->config.tp, 8);
}

// Rule K7: a GPU of one node cannot hold one layer of 7.2 billion weights. Each
// plan then splits layers over tensor ranks or by ZeRO 3; neither ZeRO 1 or 2
// nor a pipeline is enough.
TEST(DecisionFlow, ALayerThatDoesNotFitIsSplit) {
  std::string fat = modelFile("fat", 4, 24576, 192, 1024);
  PlanRequest request = openRequest(fat, 8, "dgx-a100-80g");
  request.top = 10;
  PlanOutcome outcome = planned(request);
  EXPECT_EQ(outcome.result.plans.size(), 10U);
  for (const PlannedCandidate &one : outcome.result.plans)
    EXPECT_TRUE(one.config.tp > 1 || one.config.zeroStage == 3);
  request.tp = 1;
  request.zeroStage = {{0, 1, 2}};
  EXPECT_EQ(plan(request).best(), nullptr);
}

// Rule K7, tiles: ZeRO 3 alone does not fit, because a gathered weight and its
// gradient have 4.8 GB each. With tiles it fits, and is slower. If tp is open,
// each plan has tensor ranks or tiles.
TEST(DecisionFlow, AWeightThatDoesNotFitIsTiled) {
  PlanRequest request = wideLayer(8);
  const planner::MemoryUse whole = planned(request).best()->memory;
  double fast = stepOf(request);
  request.tiles = {{4}};
  const planner::MemoryUse tiled = planned(request).best()->memory;
  double largest = 2.0 * 4 * 24576.0 * 24576.0;
  EXPECT_GT((whole.workspace - tiled.workspace).value, 0.9 * largest);
  EXPECT_EQ(whole.activations, tiled.activations);
  EXPECT_EQ(whole.parameters, tiled.parameters);
  request.memory = (whole.total() + tiled.total()) / 2.0;
  request.tiles = {{1}};
  EXPECT_EQ(plan(request).best(), nullptr);
  request.tiles = {};
  EXPECT_GT(planned(request).best()->config.tiles, 1);
  EXPECT_GT(stepOf(request), fast);
  request.tp.reset();
  request.top = 10;
  for (const PlannedCandidate &one : planned(request).result.plans)
    EXPECT_TRUE(one.config.tp > 1 || one.config.tiles > 1);
  // Weights that fit untiled stay untiled.
  request.memory = whole.total() * 1.01;
  request.tp = 1;
  EXPECT_EQ(planned(request).best()->config.tiles, 1);
}

// Rule K8: on several nodes with a fast network, ZeRO is within 5 % and
// three-dimensional parallelism within 20 % of the best.
TEST(DecisionFlow, FastNodesTakeZeroOrThreeDimensions) {
  PlanRequest request = openRequest("gpt-neox-20b", 32, "dgx-h100");
  double best = stepOf(request);
  PlanRequest zero = request;
  zero.dp = 32;
  zero.tp = 1;
  zero.pp = {{1}};
  EXPECT_GE(planned(zero).best()->config.zeroStage, 1);
  EXPECT_LE(stepOf(zero), 1.05 * best);
  PlanRequest three = request;
  three.dp = 8;
  three.tp = 2;
  three.pp = {{2}};
  EXPECT_LE(stepOf(three), 1.2 * best);
}

// Rule K9: on several nodes with a slow network and little memory, data, tensor
// and pipeline parallelism and ZeRO are all used. Tensor ranks are in one node,
// and the pipeline or the replicas across nodes.
TEST(DecisionFlow, SlowNodesShortOfMemoryTakeAllFour) {
  PlanRequest request = openRequest("gpt3-175b", 128, "p4d");
  request.software = "megatron-2020"; // gradients of 2 bytes
  request.splits = allSplits();
  request.microBatch = 1;
  PlanOutcome outcome = planned(request);
  const planner::Parallelism &config = outcome.best()->config;
  EXPECT_GT(config.dp, 1);
  EXPECT_GT(config.tp, 1);
  EXPECT_GT(config.pp, 1);
  EXPECT_EQ(config.zeroStage, 1);
  EXPECT_EQ(8 % config.tp, 0);
}

// Rule K10: the alternatives are listed in order of time.
TEST(DecisionFlow, FiveToTry) {
  PlanRequest request = openRequest("gpt2-1.2b", 8, "dgx-a100-80g");
  request.top = 5;
  PlanOutcome outcome = planned(request);
  ASSERT_EQ(outcome.result.plans.size(), 5U);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_GE(outcome.result.plans[i].time.step,
              outcome.result.plans[i - 1].time.step);
    EXPECT_NE(outcome.result.plans[i].config,
              outcome.result.plans[i - 1].config);
  }
}

// Rule K11: two dimensions need four GPUs, and three need eight.
TEST(DecisionFlow, DimensionsNeedGpus) {
  for (auto [gpus, dp, tp, pp] :
       {std::tuple("3", "2", "1", "2"), std::tuple("4", "2", "2", "2")}) {
    Ran ran = runExample("gpt2-1.2b",
                         {"--gpus", gpus, "--dp", dp, "--tp", tp, "--pp", pp});
    EXPECT_EQ(ran.code, kBadInput);
    EXPECT_THAT(ran.err, testing::HasSubstr(std::string(gpus) + " GPUs"));
  }
}

// Rule K13: a model that is too wide needs tensor ranks. A model that is too
// deep needs a pipeline or recomputation, and no tensor ranks.
TEST(DecisionFlow, WidthTakesTensorRanksAndDepthAPipeline) {
  PlanRequest wide =
      openRequest(modelFile("wide", 4, 65536, 512, 2048), 64, "dgx-a100-80g");
  wide.microBatch = 1;
  EXPECT_GT(planned(wide).best()->config.tp, 1);
  PlanRequest deep =
      openRequest(modelFile("deep", 400, 1024, 16, 1024), 8, "dgx-a100-80g");
  deep.zeroStage = {{0}}; // ZeRO would also make it fit
  PlanOutcome outcome = planned(deep);
  const planner::Parallelism &config = outcome.best()->config;
  EXPECT_EQ(config.tp, 1);
  EXPECT_TRUE(config.pp > 1 || config.recompute != Recompute::none);
}

} // namespace
} // namespace mtplan::tools
