//===- deepspeed_test.cpp - DeepSpeed's JSON ------------------------------===//

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/deepspeed.h"

namespace {

using namespace mtplan::tools;
using mtplan::planner::Offload;
using mtplan::planner::Precision;
using mtplan::planner::Recompute;
using testing::ElementsAre;
using testing::IsEmpty;

TrainerConfig read(const std::string &text, std::int64_t gpus, int stages = 1) {
  Launch launch;
  launch.gpus = gpus;
  launch.stages = stages;
  return readDeepSpeed(text, launch);
}

TEST(ExchangeDeepSpeed, ReadsAPublishedStyleFile) {
  TrainerConfig config = read(R"({
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
    "bf16": {"enabled": true},
    "zero_optimization": {
      "stage": 3, "reduce_bucket_size": 5e8, "allgather_bucket_size": "auto",
      "offload_optimizer": {"device": "cpu", "pin_memory": true},
      "offload_param": {"device": "none"}
    },
    "gradient_clipping": 1.0
  })",
                              16);
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_THAT(config.warnings,
              ElementsAre("/zero_optimization/offload_optimizer/pin_memory: "
                          "has no effect on the plan",
                          "/optimizer/params: has no effect on the plan",
                          "/gradient_clipping: has no effect on the plan"));
  EXPECT_EQ(config.parallelism.globalBatch, 4 * 2 * 16);
  EXPECT_EQ(config.parallelism.zeroStage, 3);
  EXPECT_EQ(config.parallelism.zeroRanks, 16);
  EXPECT_EQ(config.parallelism.offload, Offload::optimizer);
  EXPECT_EQ(config.training.reduceBucket, 500'000'000);
  EXPECT_EQ(config.training.gatherBucket, 0);
  EXPECT_TRUE(config.training.overlapParamGather);
  EXPECT_EQ(config.precision, Precision::bf16);
}

TEST(ExchangeDeepSpeed, TwoOfTheThreeBatchSizesGiveTheThird) {
  struct Case {
    const char *text;
    std::int64_t global, micro;
  };
  for (
      const Case &c : {
          Case{
              R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2})",
              64, 2},
          Case{R"({"train_batch_size": 64, "gradient_accumulation_steps": 4})",
               64, 2},
          Case{
              R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4})",
              64, 2},
          Case{R"({"train_batch_size": 64})", 64, 8},
          Case{R"({"train_micro_batch_size_per_gpu": 2})", 16, 2},
      }) {
    TrainerConfig config = read(c.text, 8);
    EXPECT_THAT(config.errors, IsEmpty()) << c.text;
    EXPECT_EQ(config.parallelism.globalBatch, c.global) << c.text;
    EXPECT_EQ(config.parallelism.microBatch, c.micro) << c.text;
  }
}

TEST(ExchangeDeepSpeed, TheLauncherReplacesAuto) {
  Launch launch;
  launch.gpus = 8;
  launch.microBatch = 2;
  launch.globalBatch = 32;
  TrainerConfig config = readDeepSpeed(
      R"({"train_batch_size": "auto",
          "train_micro_batch_size_per_gpu": "auto"})",
      launch);
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_EQ(config.parallelism.microBatch, 2);
  EXPECT_EQ(config.parallelism.globalBatch, 32);
}

TEST(ExchangeDeepSpeed, RejectsWithJsonPointerAndNearestValue) {
  struct Case {
    const char *text;
    std::vector<std::string> errors;
  };
  for (const Case &c : {
           Case{R"({"train_batch_size": 65,
                    "train_micro_batch_size_per_gpu": 2})",
                {"/train_batch_size: 65 does not divide by 16, which is "
                 "/train_micro_batch_size_per_gpu 2 times 8 data-parallel "
                 "replicas; nearest that do: 64 and 80"}},
           Case{R"({"train_batch_size": 60, "gradient_accumulation_steps": 4,
                    "train_micro_batch_size_per_gpu": 2})",
                {"/train_batch_size: 60 is not "
                 "/train_micro_batch_size_per_gpu 2 times "
                 "/gradient_accumulation_steps 4 times 8 data-parallel "
                 "replicas; nearest: 64"}},
           Case{"{}",
                {"/train_batch_size: is missing; give it or "
                 "/train_micro_batch_size_per_gpu"}},
           Case{R"({"train_batch_size": 8, "tensor_parallel":
                    {"autotp_size": 3}})",
                {"/tensor_parallel/autotp_size: 3 does not divide the 8 GPUs; "
                 "nearest numbers of GPUs: 6 and 9"}},
           Case{R"({"train_batch_size": 8, "zero_optimization":
                    {"stage": 4, "zero_hpz_partition_size": 3}})",
                {"/zero_optimization/stage: must be a whole number from 0 to "
                 "3, got 4",
                 "/zero_optimization/zero_hpz_partition_size: 3 does not "
                 "divide the 8 data-parallel replicas; nearest that do: 2 "
                 "and 4"}},
           Case{R"({"train_batch_size": 8, "zero_optimization":
                    {"stage": 3, "zero_hpz_partition_size": 4,
                     "offload_param": {"device": "cpu"},
                     "offload_optimizer": {"device": "nvme"}}})",
                {"/zero_optimization/zero_hpz_partition_size: not planned; 4 "
                 "keeps a second copy of the weights, mtplan one; nearest: 1, "
                 "or \"mics_shard_size\": 4, which splits all state over 4 "
                 "replicas",
                 "/zero_optimization/offload_optimizer/device: \"nvme\" is not "
                 "planned; mtplan offloads to the host's memory; nearest: "
                 "\"cpu\"",
                 "/zero_optimization/offload_param: not planned; mtplan "
                 "offloads the optimizer only; nearest: "
                 "/zero_optimization/offload_optimizer"}},
           Case{R"({"train_batch_size": 8, "fp16": {"enabled": true},
                    "bf16": {"enabled": true}, "zero_optimisation": {}})",
                {"/bf16: contradicts /fp16; enable one of them",
                 "/zero_optimisation: unknown key; the nearest valid key is "
                 "\"zero_optimization\""}},
           Case{R"({"train_batch_size": 8.5, "bf16": true})",
                {"/bf16: must be an object, got true",
                 "/train_batch_size: must be a whole number from 1 to "
                 "1048576, got 8.5"}},
       })
    EXPECT_EQ(read(c.text, 8).errors, c.errors) << c.text;
}

TEST(ExchangeDeepSpeed, WritesAGoldenFile) {
  TrainerConfig config;
  config.parallelism.pp = 4;
  config.parallelism.dp = 8;
  config.parallelism.layers = {3, 3, 3, 2};
  config.parallelism.microBatch = 2;
  config.parallelism.globalBatch = 64;
  config.parallelism.zeroStage = 1;
  config.parallelism.zeroRanks = 8;
  config.parallelism.recompute = Recompute::full;
  config.precision = Precision::bf16;
  config.training.overlapGradReduce = true;
  Exported written = writeDeepSpeed(config);
  EXPECT_EQ(written.text, R"({
  "train_batch_size": 64,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "bf16": {
    "enabled": true
  },
  "zero_optimization": {
    "stage": 1,
    "overlap_comm": true
  },
  "pipeline": {
    "stages": 4
  },
  "activation_checkpointing": {}
}
)");
  EXPECT_THAT(written.refusals, IsEmpty());
  EXPECT_THAT(
      written.notes,
      ElementsAre("DeepSpeed takes 4 pipeline stages from the code: "
                  "PipelineModule(num_stages=4), with layers 3, 3, 3, 2"));
}

// DeepSpeed checks a global batch against all ranks, tensor ranks included.
TEST(ExchangeDeepSpeed, LeavesTheGlobalBatchToTensorRanks) {
  TrainerConfig config;
  config.parallelism.tp = 2;
  config.parallelism.dp = 4;
  config.parallelism.microBatch = 1;
  config.parallelism.globalBatch = 32;
  Exported written = writeDeepSpeed(config);
  EXPECT_EQ(written.text, R"({
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 8,
  "zero_optimization": {
    "stage": 0,
    "overlap_comm": false
  },
  "tensor_parallel": {
    "autotp_size": 2
  }
}
)");
  EXPECT_THAT(written.refusals, IsEmpty());
  EXPECT_THAT(written.notes,
              ElementsAre("DeepSpeed counts the 2 tensor ranks as replicas, "
                          "and so reports a batch of 64 for the plan's 32; it "
                          "chooses by itself whether they split the "
                          "embedding"));
  EXPECT_EQ(read(written.text, 8).parallelism.globalBatch, 32);
}

TEST(ExchangeDeepSpeed, RefusesPlansThatItWouldRunOtherwise) {
  TrainerConfig config;
  auto &p = config.parallelism;
  p.pp = p.tp = p.cp = 2;
  p.dp = 4;
  p.sequenceParallel = true;
  p.schedule = mtplan::planner::ScheduleKind::zeroBubble;
  p.zeroStage = p.zeroRanks = 2;
  EXPECT_THAT(
      writeDeepSpeed(config).refusals,
      ElementsAre(
          "DeepSpeed runs its stages by the schedule 1f1b, but the plan has "
          "zero-bubble; nearest: --schedule 1f1b",
          "DeepSpeed's pipeline has at most ZeRO stage 1, but the 2 stages "
          "have 2; nearest: --zero 1",
          "DeepSpeed's automatic tensor parallelism has no pipeline, but the "
          "plan has 2 tensor ranks and 2 stages; nearest: --tp 1 or --pp 1",
          "DeepSpeed's sequence ranks exchange heads by all-to-all, but the "
          "plan's 2 context ranks gather keys and values; nearest: --cp 1",
          "DeepSpeed's tensor ranks hold all positions, but the plan's 2 split "
          "the sequence; nearest: --sequence-parallel off",
          "DeepSpeed shards the state over all 4 replicas, but the plan over "
          "2; nearest: --zero-ranks all"));
  TrainerConfig offloads;
  offloads.parallelism.dp = 4;
  offloads.parallelism.offload = Offload::optimizer;
  EXPECT_THAT(writeDeepSpeed(offloads).refusals,
              ElementsAre("DeepSpeed offloads an optimizer that is sharded "
                          "over the 4 replicas, ZeRO stage 1, but the plan has "
                          "stage 0; nearest: --zero 1"));
}

TEST(ExchangeDeepSpeed, TheFileMayNameItsStages) {
  const char *const file = R"({"train_batch_size": 16,
    "train_micro_batch_size_per_gpu": 2,
    "pipeline": {"stages": 2, "partition": "best"}})";
  TrainerConfig config = read(file, 8);
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_EQ(config.parallelism.pp, 2);
  EXPECT_EQ(config.parallelism.dp, 4);
  EXPECT_THAT(read(file, 8, 4).errors,
              ElementsAre("/pipeline/stages: 2 contradicts the 4 pipeline "
                          "stages asked for; nearest: 4"));
  EXPECT_THAT(
      read(R"({"train_batch_size": 16, "sequence_parallel_size": 2})", 8)
          .warnings,
      ElementsAre("/sequence_parallel_size: DeepSpeed's ranks exchange "
                  "heads; planned as ranks that gather keys and "
                  "values"));
}

TEST(ExchangeDeepSpeed, WritesWhatItRead) {
  std::mt19937_64 random(3);
  auto draw = [&](int most) { return static_cast<int>(random() % most); };
  for (int i = 0; i < 500; ++i) {
    TrainerConfig config;
    mtplan::planner::Parallelism &p = config.parallelism;
    p.pp = 1 + draw(3);
    p.tp = p.pp > 1 ? 1 : 1 << draw(4);
    p.dp = 1 << draw(5);
    p.microBatch = 1 + draw(4);
    p.globalBatch = p.microBatch * p.dp * (1 + draw(8));
    p.zeroStage = draw(p.pp > 1 ? 2 : 4);
    p.zeroRanks = p.zeroStage == 0 ? 1 : p.dp;
    if (p.zeroStage > 0 && draw(2))
      p.offload = Offload::optimizer;
    if (draw(2))
      p.recompute = Recompute::full;
    config.precision = static_cast<Precision>(draw(3));
    TrainingKnobs &t = config.training;
    t.overlapPipeline = false;
    t.overlapGradReduce = draw(2);
    t.overlapParamGather = t.overlapGradReduce && p.zeroStage == 3;
    t.fp32Gradients = config.precision == Precision::fp32 || draw(2);
    t.reduceBucket = draw(2) * 1000;
    t.gatherBucket = draw(2) * 2000;
    Exported written = writeDeepSpeed(config);
    EXPECT_THAT(written.refusals, IsEmpty()) << written.text;
    TrainerConfig again = read(written.text, p.devices());
    ASSERT_THAT(again.errors, IsEmpty()) << written.text;
    EXPECT_EQ(again.parallelism, p) << written.text;
    EXPECT_EQ(again.training, t) << written.text;
    EXPECT_EQ(again.precision, config.precision);
    EXPECT_EQ(writeDeepSpeed(again).text, written.text);
  }
}

TEST(ExchangeDeepSpeed, SurvivesBrokenText) {
  EXPECT_THAT(read("", 1).errors, testing::SizeIs(1));
  EXPECT_THAT(read(R"({"train_batch_size": NaN})", 1).errors,
              testing::SizeIs(1));
  EXPECT_THAT(read(R"({"train_batch_size": 1e999})", 1).errors,
              testing::SizeIs(testing::Ge(1u)));
  EXPECT_THAT(read(std::string().append(10'000'000, '['), 1).errors,
              ElementsAre("1:65: nested deeper than 64 levels"));
  EXPECT_FALSE(read('"' + std::string().append(10'000'000, 'x') + '"', 1).ok());
  EXPECT_FALSE(read("[1, 2]", 1).ok());
  EXPECT_FALSE(read(R"({"train_batch_size": 8})", 0).ok());
  EXPECT_FALSE(read(R"({"train_batch_size": 8})", 8, 0).ok());
  EXPECT_FALSE(read(R"({"train_batch_size": 1048575,
                        "gradient_accumulation_steps": 1048576,
                        "train_micro_batch_size_per_gpu": 1048576})",
                    1 << 20)
                   .ok());
  std::string whole = R"({"train_batch_size": 8, "zero_optimization":
    {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {}})";
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(read(whole.substr(0, length), 8).ok());
  std::mt19937_64 random(5);
  const std::string letters = "{}[]\",:0123456789e.-\x80nt";
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 3; ++k)
      text[random() % text.size()] = letters[random() % letters.size()];
    read(text, 8);
  }
}

} // namespace
