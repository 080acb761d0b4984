//===- torchtitan_test.cpp - torchtitan's and accelerate's files ----------===//

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/torchtitan.h"

namespace {

using namespace mtplan::tools;
using mtplan::planner::Precision;
using mtplan::planner::Recompute;
using mtplan::planner::ScheduleKind;
using testing::ElementsAre;
using testing::IsEmpty;

Launch launchOf(std::int64_t gpus, std::int64_t layers) {
  Launch launch;
  launch.gpus = gpus;
  launch.layers = layers;
  return launch;
}

TEST(ExchangeTorchtitan, ReadsAJob) {
  TrainerConfig config = readTorchtitan(R"(# a job
[job]
dump_folder = "./outputs"

[training]
local_batch_size = 2
seq_len = 8_192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = -1   # the rest
tensor_parallel_degree = 4
[activation_checkpoint]
mode = 'selective'
selective_ac_option = "op"
)",
                                        launchOf(64, 32));
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_THAT(config.warnings,
              ElementsAre("/activation_checkpoint/selective_ac_option: planned "
                          "as the core of attention",
                          "/job: has no effect on the plan"));
  EXPECT_EQ(config.parallelism.dp, 16);
  EXPECT_EQ(config.parallelism.zeroStage, 3);
  EXPECT_EQ(config.parallelism.zeroRanks, 8);
  EXPECT_EQ(config.parallelism.globalBatch, 32);
  EXPECT_EQ(config.model.sequence, 8192);
  EXPECT_TRUE(config.parallelism.sequenceParallel);
  EXPECT_EQ(config.parallelism.recompute, Recompute::selective);
}

// The expected layers follow torchtitan's rule by hand. For example, 8 layers,
// the embedding and the head are 10, which four stages share as 3, 3, 2 and 2.
TEST(ExchangeTorchtitan, SharesLayersAsTorchtitanDoes) {
  EXPECT_THAT(torchtitanParts(4, 2), ElementsAre(2, 2));
  EXPECT_THAT(torchtitanParts(8, 4), ElementsAre(2, 3, 2, 1));
  EXPECT_THAT(torchtitanParts(32, 1), ElementsAre(32));
  EXPECT_THAT(torchtitanParts(2, 5), IsEmpty());
}

TEST(ExchangeTorchtitan, WritesAGoldenFile) {
  TrainerConfig config;
  auto &p = config.parallelism;
  p.dp = 4;
  p.tp = 2;
  p.pp = 2;
  p.sequenceParallel = true;
  p.microBatch = 1;
  p.globalBatch = 32;
  p.zeroStage = 2;
  p.zeroRanks = 4;
  p.layers = {3, 1};
  config.precision = Precision::bf16;
  config.training.fp32Gradients = true;
  config.model.sequence = 2048;
  Exported written = writeTorchtitan(config);
  EXPECT_EQ(written.text, R"([parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = 4
fsdp_reshard_after_forward = "never"
tensor_parallel_degree = 2
context_parallel_degree = 1
expert_parallel_degree = 1
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
pipeline_parallel_microbatch_size = 1
module_fqns_per_model_part = [
  ["tok_embeddings", "layers.0", "layers.1", "layers.2"],
  ["layers.3", "norm", "output"],
]

[training]
local_batch_size = 8
global_batch_size = 32
seq_len = 2048
mixed_precision_param = "bfloat16"
mixed_precision_reduce = "float32"

[activation_checkpoint]
mode = "none"
)");
  EXPECT_THAT(written.notes, IsEmpty());
}

TEST(ExchangeTorchtitan, WritesWhatItRead) {
  std::mt19937_64 random(13);
  auto draw = [&](int most) { return static_cast<int>(random() % most); };
  for (int i = 0; i < 500; ++i) {
    TrainerConfig config;
    auto &p = config.parallelism;
    p.tp = 1 << draw(3);
    p.sequenceParallel = p.tp > 1;
    p.pp = 1 + draw(4);
    p.dp = 1 << draw(4);
    p.microBatch = 1 + draw(3);
    p.globalBatch = p.microBatch * p.dp * p.pp * (1 + draw(4));
    p.zeroStage = p.dp > 1 ? std::array{0, 2, 3}[draw(3)] : 0;
    p.cp = p.zeroStage > 0 ? 1 << draw(2) : 1;
    p.zeroRanks = p.zeroStage > 0 ? (p.dp > 2 ? p.dp >> draw(2) : p.dp) : 1;
    p.recompute = draw(2) ? Recompute::full : Recompute::none;
    if (p.pp > 1 && draw(2)) {
      p.schedule = ScheduleKind::interleaved;
      p.virtualStages = 2 + draw(2);
    } else if (p.pp > 1 && draw(2)) {
      p.schedule = ScheduleKind::gpipe;
    }
    for (int part = 0; part < p.pp * p.virtualStages; ++part)
      p.layers.push_back(1 + draw(3));
    config.precision = draw(2) ? Precision::bf16 : Precision::fp32;
    config.training.fp32Gradients = true; // torchtitan has no other
    Exported written = writeTorchtitan(config);
    EXPECT_THAT(written.refusals, IsEmpty());
    std::string text = written.text;
    int layers = std::accumulate(p.layers.begin(), p.layers.end(), 0);
    TrainerConfig again = readTorchtitan(text, launchOf(p.devices(), layers));
    ASSERT_THAT(again.errors, IsEmpty()) << text;
    EXPECT_EQ(again.parallelism, p) << text;
    EXPECT_EQ(again.precision, config.precision);
    EXPECT_EQ(again.training.fp32Gradients, config.training.fp32Gradients);
    EXPECT_EQ(writeTorchtitan(again).text, text);
  }
}

TEST(ExchangeTorchtitan, RefusesPlansThatItWouldRunOtherwise) {
  TrainerConfig config;
  auto &p = config.parallelism;
  p.pp = p.tp = p.cp = 2;
  p.dp = 4;
  p.zeroStage = 1;
  p.zeroRanks = 4;
  p.schedule = ScheduleKind::zeroBubble;
  p.recompute = Recompute::selective;
  p.offload = mtplan::planner::Offload::optimizer;
  config.precision = Precision::fp16;
  EXPECT_THAT(
      writeTorchtitan(config).refusals,
      ElementsAre(
          "torchtitan shards gradients along with the optimizer's state, ZeRO "
          "stage 2 or 3, but the plan has stage 1; nearest: --zero 2",
          "torchtitan does not recompute the core of attention alone, as the "
          "plan does; nearest: --recompute none or full",
          "torchtitan offloads parameters along with the optimizer, but the "
          "plan the optimizer alone; nearest: --offload none",
          "torchtitan's tensor ranks always split the sequence, but the plan's "
          "2 do not; nearest: --sequence-parallel on, or --tp 1",
          "torchtitan runs InterleavedZeroBubble with several virtual stages "
          "on a stage, but zero-bubble has 1; nearest: --schedule 1f1b",
          "torchtitan trains in bfloat16 or float32, but the plan in fp16; "
          "nearest: --precision bf16"));
  p = {};
  p.cp = 2;
  p.recompute = Recompute::full;
  p.recomputeLayers = 3;
  config.precision = Precision::bf16;
  EXPECT_THAT(writeTorchtitan(config).refusals,
              ElementsAre("torchtitan recomputes all layers or none, but the "
                          "plan 3 of a virtual stage; nearest: --recompute "
                          "full, without --recompute-layers",
                          "torchtitan shards the state over the 2 context "
                          "ranks, but the plan has ZeRO stage 0; nearest: "
                          "--cp 1"));
  p = {};
  p.dp = 2;
  p.zeroStage = p.zeroRanks = 2;
  Exported written = writeTorchtitan(config);
  EXPECT_THAT(written.text,
              testing::HasSubstr("mixed_precision_reduce = \"float32\"\n"));
  EXPECT_THAT(written.notes,
              ElementsAre("torchtitan reduces gradients in float32, twice the "
                          "bytes of the plan's bfloat16"));
}

TEST(ExchangeTorchtitan, RefusesByPointer) {
  struct Case {
    const char *text;
    std::vector<std::string> errors;
  };
  for (const Case &c : {
           Case{"[parallelism]\ndata_parallel_shard_degree = 3\n",
                {"/parallelism/data_parallel_shard_degree: 3 times "
                 "/parallelism/data_parallel_replicate_degree 1 is 3, not the "
                 "8 data-parallel replicas; nearest: 8"}},
           Case{"[parallelism]\npipeline_parallel_degree = 2\n"
                "pipeline_parallel_schedule = \"Chimera\"\n",
                {"/parallelism/pipeline_parallel_schedule: \"Chimera\" is "
                 "unknown; known: GPipe, 1F1B, Interleaved1F1B, "
                 "InterleavedZeroBubble, ZBVZeroBubble, ZBV"}},
           Case{"[training]\nlocal_batch_size = 3\nglobal_batch_size = 40\n",
                {"/training/global_batch_size: 40 does not divide by 24, which "
                 "is /training/local_batch_size 3 times 8 data-parallel "
                 "replicas; nearest that do: 24 and 48"}},
           Case{"[parallelism]\ntensor_parallel_degre = 2\n",
                {"/parallelism/tensor_parallel_degre: unknown key; the nearest "
                 "valid key is \"tensor_parallel_degree\""}},
           Case{
               "[training]\nsteps = \"\"\"x\nmode\n",
               {"line 3: Error while parsing string: encountered end-of-file"}},
           Case{"[training]\n\nmode\n",
                {"line 3: Error while parsing key-value pair: expected '=', "
                 "saw '\\n'"}},
           Case{"[[a]]\nx.y = 1\n",
                {"/a: unknown key; the nearest valid key is "
                 "\"activation_checkpoint\""}},
           Case{"[training]\nx = 1\nz = nan\nd = 2026-01-02\n",
                {"line 4: expected a string, a number, true, false, an array "
                 "or a table",
                 "line 3: expected a string, a number, true, false, an array "
                 "or a table"}},
           Case{"[training]\nw = 1\nw = 2\n",
                {"line 3: Error while parsing key-value pair: cannot redefine "
                 "existing integer 'w'"}},
       })
    EXPECT_EQ(readTorchtitan(c.text, launchOf(8, 16)).errors, c.errors)
        << c.text;
}

// toml++ frees tables recursively, so parseToml() rejects deep keys before it
// calls toml++.
TEST(ExchangeTorchtitan, RefusesKeysOfManyParts) {
  const auto errorsOf = [](std::size_t parts) {
    std::string text = "# ....\n[a";
    for (std::size_t i = 1; i < parts; ++i)
      text += ".a";
    return readTorchtitan(text + "]\n", launchOf(8, 16)).errors;
  };
  const std::string unknown = "/a: unknown key; the nearest valid key is "
                              "\"activation_checkpoint\"";
  EXPECT_EQ(errorsOf(32), std::vector{unknown});
  for (const std::size_t many : {33, 1'000'000})
    EXPECT_EQ(errorsOf(many),
              std::vector<std::string>{"line 2: a key has more than 32 parts"});
}

TEST(ExchangeTorchtitan, SurvivesBrokenText) {
  std::string whole = "[parallelism]\npipeline_parallel_degree = 2\n"
                      "module_fqns_per_model_part = [[\"layers.0\"], [1]]\n"
                      "[training]\nseq_len = 8\n";
  for (std::size_t length = 0; length < whole.size(); ++length)
    readTorchtitan(whole.substr(0, length), launchOf(8, 2));
  std::mt19937_64 random(29);
  const std::string letters = "[]\"'=#.,\n0123456789e-_\\x\xff";
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 4; ++k)
      text[random() % text.size()] = letters[random() % letters.size()];
    readTorchtitan(text, launchOf(8, 2));
  }
  std::string deep = std::string().append(10'000'000, '[');
  EXPECT_FALSE(readTorchtitan("a = " + deep, launchOf(8, 2)).ok());
  EXPECT_FALSE(readTorchtitan(deep, launchOf(8, 2)).ok());
}

TEST(ExchangeAccelerate, WritesAGoldenFile) {
  TrainerConfig config;
  auto &p = config.parallelism;
  p.dp = 8;
  p.tp = 2;
  p.microBatch = 2;
  p.globalBatch = 64;
  p.zeroStage = 3;
  p.zeroRanks = 4;
  p.recompute = Recompute::full;
  config.precision = Precision::bf16;
  Exported written = writeAccelerate(config);
  EXPECT_EQ(written.text, R"(compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: 'bf16'
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_activation_checkpointing: true
  fsdp_offload_params: false
  fsdp_state_dict_type: SHARDED_STATE_DICT
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 4
  parallelism_config_tp_size: 2
  parallelism_config_cp_size: 1
)");
  EXPECT_THAT(written.notes,
              ElementsAre("set in the script: 2 samples per device at "
                          "once, 4 steps of gradient accumulation",
                          "set in the script: the 2 tensor ranks split the "
                          "model by its tp_plan, which --export hf-tp-plan "
                          "writes"));
  EXPECT_THAT(written.refusals, IsEmpty());
}

TEST(ExchangeAccelerate, RefusesPlansThatItWouldRunOtherwise) {
  TrainerConfig config;
  auto &p = config.parallelism;
  p.pp = p.tp = p.ep = 2;
  p.dp = 4;
  p.sequenceParallel = true;
  EXPECT_THAT(
      writeAccelerate(config).refusals,
      ElementsAre(
          "accelerate has no pipeline for training, but the plan has 2 stages; "
          "nearest: --pp 1",
          "accelerate has no expert ranks, but the plan has 2; nearest: --ep 1",
          "accelerate's tensor ranks hold all positions, but the plan's 2 "
          "split the sequence; nearest: --sequence-parallel off",
          "accelerate has no replicas of tensor ranks unless they shard the "
          "state, but the 4 replicas have ZeRO stage 0; nearest: --zero 2 or "
          "3, or --dp 1"));
}

TEST(ExchangeSchedules, KnowsPyTorchsNames) {
  EXPECT_EQ(scheduleNamed("gpipe")->kind, ScheduleKind::gpipe);
  EXPECT_EQ(scheduleNamed("1F1B")->kind, ScheduleKind::oneForwardOneBackward);
  EXPECT_EQ(scheduleNamed("Interleaved1F1B")->kind, ScheduleKind::interleaved);
  EXPECT_EQ(scheduleNamed("ZBV")->kind, ScheduleKind::zeroBubble);
  EXPECT_FALSE(scheduleNamed("DualPipeV"));
  EXPECT_STREQ(pytorchName(ScheduleKind::zeroBubble), "InterleavedZeroBubble");
}

} // namespace
