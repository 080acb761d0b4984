//===- megatron_test.cpp - Megatron-LM's command line ---------------------===//

#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/megatron.h"

namespace {

using namespace mtplan::tools;
using mtplan::planner::Offload;
using mtplan::planner::Precision;
using mtplan::planner::Recompute;
using mtplan::planner::ScheduleKind;
using testing::ElementsAre;
using testing::IsEmpty;

// Joins lines, so that the option lists below stay short.
std::string flat(std::string text) {
  for (std::size_t at; (at = text.find(" \\\n")) != std::string::npos;)
    text.replace(at, 3, " ");
  return text;
}

// Holds the options of the trillion-parameter model of Narayanan et al. 2021.
const char *const kTrillion =
    "--num-layers 128 --hidden-size 25600 --ffn-hidden-size 102400 "
    "--num-attention-heads 160 --seq-length 2048 "
    "--max-position-embeddings 2048 --tensor-model-parallel-size 8 "
    "--pipeline-model-parallel-size 64 --recompute-granularity full "
    "--recompute-method uniform --recompute-num-layers 1 "
    "--micro-batch-size 1 --global-batch-size 3072 --fp16";

TEST(ExchangeMegatron, ReadsTheLayoutOfATrillionParameters) {
  TrainerConfig config = readMegatron(kTrillion, 3072);
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_EQ(config.parallelism.tp, 8);
  EXPECT_EQ(config.parallelism.pp, 64);
  EXPECT_EQ(config.parallelism.dp, 6);
  EXPECT_EQ(config.parallelism.microBatches(), 512);
  EXPECT_EQ(config.parallelism.layers, std::vector<int>(64, 2));
  EXPECT_EQ(config.parallelism.recompute, Recompute::full);
  EXPECT_EQ(config.parallelism.recomputeLayers, -1);
  EXPECT_EQ(config.precision, Precision::fp16);
}

TEST(ExchangeMegatron, ReadsACommandOfAScript) {
  TrainerConfig config = readMegatron(
      R"(# eight GPUs of one node
CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nproc_per_node 8 \
    --log-dir logs pretrain_gpt.py \
    --num-layers 24 --hidden-size=1024 \
    --num-attention-heads "16" --seq-length '1024' \
    --tensor-model-parallel-size 2 --sequence-parallel \
    --micro-batch-size 4 --lr 1e-4 --data-path "my data" more \
    --tokenizer-type GPT2BPETokenizer --lr -1
)",
      8);
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_THAT(config.warnings,
              ElementsAre("--lr: has no effect on the plan",
                          "--data-path: has no effect on the plan",
                          "--tokenizer-type: has no effect on the plan"));
  EXPECT_EQ(config.parallelism.dp, 4);
  EXPECT_EQ(config.parallelism.globalBatch, 16);
  EXPECT_TRUE(config.parallelism.sequenceParallel);
  EXPECT_EQ(config.model.ffn, 4096);
  EXPECT_EQ(config.model.kvHeads, 16);
}

// Holds options as writeMegatron() spells them. Reading and writing them gives
// the same text.
struct Spelling {
  std::int64_t gpus;
  std::string text;
};

std::vector<Spelling> spellings() {
  const std::string model = "--num-layers 24 --hidden-size 1024 "
                            "--ffn-hidden-size 4096 --num-attention-heads 16 "
                            "--seq-length 1024 --max-position-embeddings 1024 ";
  auto with = [&](const std::string &more) { return model + more; };
  return {
      {3072, kTrillion},
      {1, with("--tensor-model-parallel-size 1 --pipeline-model-parallel-size "
               "1 --micro-batch-size 8 --global-batch-size 8")},
      {8, with("--tensor-model-parallel-size 8 --sequence-parallel "
               "--pipeline-model-parallel-size 1 --use-distributed-optimizer "
               "--overlap-grad-reduce --overlap-param-gather "
               "--recompute-granularity selective --micro-batch-size 2 "
               "--global-batch-size 16 --bf16")},
      {32, with("--tensor-model-parallel-size 2 "
                "--pipeline-model-parallel-size 4 "
                "--num-virtual-stages-per-pipeline-rank 3 "
                "--micro-batch-size 1 --global-batch-size 64 "
                "--attention-dropout 0 --hidden-dropout 0 --bf16")},
      {32, with("--tensor-model-parallel-size 1 "
                "--pipeline-model-parallel-size 4 "
                "--decoder-first-pipeline-num-layers 5 "
                "--decoder-last-pipeline-num-layers 3 --micro-batch-size 1 "
                "--global-batch-size 64 --bf16 --grad-reduce-in-bf16")},
      {8, with("--tensor-model-parallel-size 1 "
               "--pipeline-model-parallel-size 4 "
               "--pipeline-model-parallel-layout "
               "'Et*2|t*4|t*4|t*2|t*3|t*4|t*4|tL' --micro-batch-size 1 "
               "--global-batch-size 64 --bf16")},
      {16, with("--tensor-model-parallel-size 2 "
                "--pipeline-model-parallel-size 1 --context-parallel-size 4 "
                "--cp-comm-type all_gather --micro-batch-size 1 "
                "--global-batch-size 8 --bf16")},
      {16, with("--tensor-model-parallel-size 2 "
                "--pipeline-model-parallel-size 1 "
                "--use-distributed-optimizer --use-megatron-fsdp "
                "--data-parallel-sharding-strategy optim_grads_params "
                "--ckpt-format fsdp_dtensor "
                "--micro-batch-size 1 --global-batch-size 8 --bf16")},
      {64, with("--tensor-model-parallel-size 1 "
                "--pipeline-model-parallel-size 1 --use-distributed-optimizer "
                "--use-megatron-fsdp --data-parallel-sharding-strategy "
                "optim_grads --ckpt-format fsdp_dtensor "
                "--num-distributed-optimizer-instances 4 "
                "--micro-batch-size 1 --global-batch-size 64 --fp16 "
                "--accumulate-allreduce-grads-in-fp32")},
      {16, with("--num-experts 8 --moe-router-topk 2 "
                "--moe-token-dispatcher-type alltoall "
                "--moe-expert-capacity-factor 1.25 "
                "--moe-pad-expert-input-to-capacity --moe-aux-loss-coeff 0.02 "
                "--tensor-model-parallel-size 2 --sequence-parallel "
                "--pipeline-model-parallel-size 1 "
                "--expert-model-parallel-size 8 --micro-batch-size 1 "
                "--global-batch-size 64 --bf16")},
      {8, with("--tensor-model-parallel-size 1 "
               "--pipeline-model-parallel-size 2 "
               "--num-virtual-stages-per-pipeline-rank 2 "
               "--no-overlap-p2p-communication --micro-batch-size 1 "
               "--global-batch-size 64")},
      {24, "--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 "
           "--num-attention-heads 64 --group-query-attention "
           "--num-query-groups 8 --seq-length 8192 "
           "--max-position-embeddings 8192 --vocab-size 128256 "
           "--make-vocab-size-divisible-by 1 --swiglu --normalization RMSNorm "
           "--norm-epsilon 1e-06 --position-embedding-type rope "
           "--rotary-base 500000 --rotary-percent 0.5 "
           "--untie-embeddings-and-output-weights --disable-bias-linear "
           "--add-qkv-bias "
           "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 "
           "--use-distributed-optimizer --ddp-bucket-size 40000000 "
           "--optimizer-cpu-offload --use-precision-aware-optimizer "
           "--recompute-granularity full --recompute-method block "
           "--recompute-num-layers 7 --micro-batch-size 1 "
           "--global-batch-size 96 --bf16"},
      {8, "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 "
          "--micro-batch-size 3 --global-batch-size 6 --bf16"},
  };
}

TEST(ExchangeMegatron, WritesWhatItRead) {
  for (const Spelling &spelling : spellings()) {
    TrainerConfig config = readMegatron(spelling.text, spelling.gpus);
    if (spelling.text.find("--no-overlap-p2p") != std::string::npos) {
      EXPECT_THAT(config.errors,
                  ElementsAre("--num-virtual-stages-per-pipeline-rank 2 needs "
                              "--pipeline-model-parallel-size of at least 3 "
                              "with --no-overlap-p2p-communication, but it is "
                              "2; nearest: 3"));
      continue;
    }
    EXPECT_THAT(config.errors, IsEmpty()) << spelling.text;
    Exported written = writeMegatron(config);
    EXPECT_EQ(flat(written.text), spelling.text);
    EXPECT_THAT(written.notes, IsEmpty());
  }
}

TEST(ExchangeMegatron, WritesOneOptionALine) {
  TrainerConfig config;
  config.parallelism.tp = 2;
  config.parallelism.dp = 4;
  config.parallelism.microBatch = 2;
  config.parallelism.globalBatch = 64;
  config.precision = Precision::bf16;
  config.training.fp32Gradients = true;
  config.training.overlapParamGather = config.training.overlapGradReduce = true;
  config.training.overlapPipeline = false;
  Exported written = writeMegatron(config);
  EXPECT_EQ(written.text, R"(--tensor-model-parallel-size 2 \
--pipeline-model-parallel-size 1 \
--overlap-grad-reduce \
--micro-batch-size 2 \
--global-batch-size 64 \
--bf16)");
  EXPECT_THAT(written.notes, IsEmpty());
  EXPECT_THAT(written.refusals, IsEmpty());
}

TEST(ExchangeMegatron, RefusesPlansThatItWouldRunOtherwise) {
  TrainerConfig config;
  auto &p = config.parallelism;
  p.pp = 2;
  p.dp = 4;
  p.schedule = ScheduleKind::zeroBubble;
  p.offload = Offload::optimizer;
  p.recompute = Recompute::selective;
  p.recomputeLayers = 3;
  EXPECT_THAT(
      writeMegatron(config).refusals,
      ElementsAre("Megatron-LM has no schedule zero-bubble, which the 2 stages "
                  "run; nearest: --schedule 1f1b",
                  "Megatron-LM offloads an optimizer that is sharded over the "
                  "4 replicas, ZeRO stage 1, but the plan has stage 0; "
                  "nearest: --zero 1",
                  "Megatron-LM recomputes attention in all layers, but the "
                  "plan in 3 of a virtual stage; nearest: all layers"));
  p = {};
  p.pp = p.virtualStages = 2;
  p.schedule = ScheduleKind::interleaved;
  config.training.overlapPipeline = false;
  EXPECT_THAT(writeMegatron(config).refusals,
              ElementsAre("Megatron-LM runs 2 virtual stages on 2 stages only "
                          "if sends overlap compute, which the plan leaves "
                          "out; nearest: --overlap sends, or 3 stages"));
  config.training.overlapPipeline = true;
  EXPECT_THAT(writeMegatron(config).refusals, IsEmpty());
}

// The configuration that is read back must be the plan that was written.
TEST(ExchangeMegatron, RefusesAFileThatReadsAsAnotherPlan) {
  TrainerConfig config;
  auto &p = config.parallelism;
  p.dp = 4;
  p.zeroStage = 1;
  p.zeroRanks = 4;
  p.microBatch = 1;
  p.globalBatch = 8;
  Exported written = writeMegatron(config);
  refuseOtherPlan(p, readMegatron(written.text, 4), "Megatron-LM", written);
  EXPECT_THAT(written.refusals, IsEmpty());
  refuseOtherPlan(p, readMegatron(written.text, 8), "Megatron-LM", written);
  EXPECT_THAT(written.refusals,
              ElementsAre("Megatron-LM would run data-parallel replicas 8, but "
                          "the plan has 4",
                          "Megatron-LM would run ZeRO ranks 8, but the plan "
                          "has 4"));
  written.refusals.clear();
  refuseOtherPlan(p, readMegatron(written.text, 3), "Megatron-LM", written);
  EXPECT_THAT(written.refusals,
              ElementsAre("--global-batch-size 8 does not divide by 3, which "
                          "is --micro-batch-size 1 times 3 data-parallel "
                          "replicas; nearest that do: 6 and 9"));
}

TEST(ExchangeMegatron, BothSpellingsOfVirtualStagesAgree) {
  std::string base = "--num-layers 24 --pipeline-model-parallel-size 4 "
                     "--micro-batch-size 1 --global-batch-size 64 ";
  TrainerConfig stages =
      readMegatron(base + "--num-virtual-stages-per-pipeline-rank 3", 4);
  TrainerConfig layers =
      readMegatron(base + "--num-layers-per-virtual-pipeline-stage 2", 4);
  EXPECT_THAT(stages.errors, IsEmpty());
  EXPECT_THAT(layers.errors, IsEmpty());
  EXPECT_EQ(stages.parallelism, layers.parallelism);
  EXPECT_EQ(stages.parallelism.layers, std::vector<int>(12, 2));
  EXPECT_EQ(stages.parallelism.schedule, ScheduleKind::interleaved);
}

TEST(ExchangeMegatron, CountsEmbeddingAndLossAsLayers) {
  TrainerConfig config = readMegatron(
      "--num-layers 30 --pipeline-model-parallel-size 4 "
      "--num-virtual-stages-per-pipeline-rank 2 --micro-batch-size 1 "
      "--global-batch-size 8 --account-for-embedding-in-pipeline-split "
      "--account-for-loss-in-pipeline-split",
      4);
  EXPECT_THAT(config.errors, IsEmpty());
  EXPECT_THAT(config.parallelism.layers, ElementsAre(3, 4, 4, 4, 4, 4, 4, 3));
}

TEST(ExchangeMegatron, ReadsALayout) {
  // Each stage has two virtual stages. The first of these 32 has 3 layers, 29
  // have 2 layers, and the last two have none.
  TrainerConfig config = readMegatron(
      "--num-layers 61 --pipeline-model-parallel-size 16 --micro-batch-size 1 "
      "--global-batch-size 64 --pipeline-model-parallel-layout "
      "'Et*3|(tt|)*29,|L'",
      16);
  EXPECT_THAT(config.errors, IsEmpty());
  std::vector<int> expected(32, 2);
  expected[0] = 3;
  expected[30] = expected[31] = 0;
  EXPECT_EQ(config.parallelism.layers, expected);
  EXPECT_EQ(config.parallelism.virtualStages, 2);
}

// Each layer is in exactly one stage, or the numbers are rejected.
TEST(ExchangeMegatron, NeverLosesALayer) {
  std::mt19937_64 random(7);
  auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    int layers = draw(1, 48), stages = draw(1, 8);
    std::string text = fmt::format(
        "--num-layers {} --pipeline-model-parallel-size {} --micro-batch-size "
        "1 --global-batch-size {}",
        layers, stages, stages * draw(1, 4));
    if (draw(0, 1))
      text +=
          fmt::format(" --num-virtual-stages-per-pipeline-rank {}", draw(1, 4));
    else if (draw(0, 1))
      text += fmt::format(" --num-layers-per-virtual-pipeline-stage {}",
                          draw(1, 6));
    if (draw(0, 2) == 0)
      text +=
          fmt::format(" --decoder-first-pipeline-num-layers {}", draw(1, 10));
    if (draw(0, 2) == 0)
      text +=
          fmt::format(" --decoder-last-pipeline-num-layers {}", draw(1, 10));
    if (draw(0, 3) == 0)
      text += " --account-for-embedding-in-pipeline-split";
    TrainerConfig config = readMegatron(text, stages);
    if (!config.ok())
      continue;
    ++accepted;
    const auto &parts = config.parallelism.layers;
    int sum = 0;
    for (int part : parts) {
      EXPECT_GE(part, 0) << text;
      sum += part;
    }
    EXPECT_EQ(sum, layers) << text;
    EXPECT_EQ(static_cast<int>(parts.size()),
              stages * config.parallelism.virtualStages)
        << text;
    // Writing and reading again keeps the layers.
    TrainerConfig again =
        readMegatron(writeMegatron(config).text, config.parallelism.devices());
    EXPECT_THAT(again.errors, IsEmpty()) << text;
    EXPECT_EQ(again.parallelism, config.parallelism) << text;
    EXPECT_EQ(again.model, config.model) << text;
  }
  EXPECT_GT(accepted, 300);
}

// Any configuration that Megatron-LM can express is read back unchanged.
TEST(ExchangeMegatron, ReadsWhatItWrote) {
  std::mt19937_64 random(19);
  auto draw = [&](int most) { return static_cast<int>(random() % most); };
  for (int i = 0; i < 1000; ++i) {
    TrainerConfig config;
    auto &p = config.parallelism;
    p.tp = 1 << draw(4);
    p.cp = 1 << draw(3);
    p.pp = 1 + draw(5);
    p.dp = 1 << draw(5);
    p.sequenceParallel = p.tp > 1 && draw(2);
    if (p.pp > 1 && draw(2)) {
      p.virtualStages = 2 + draw(2);
      p.schedule = ScheduleKind::interleaved;
    }
    for (int part = 0; part < p.pp * p.virtualStages; ++part)
      p.layers.push_back(1 + draw(draw(2) ? 1 : 3));
    p.microBatch = 1 + draw(3);
    p.globalBatch = p.microBatch * p.dp * p.pp * (1 + draw(5));
    p.zeroStage = draw(4);
    p.zeroRanks = p.zeroStage == 0 ? 1 : p.dp >> (p.dp > 1 ? draw(2) : 0);
    p.recompute = static_cast<Recompute>(draw(3));
    if (p.recompute == Recompute::full && draw(2))
      p.recomputeLayers = 1;
    // Offloading needs the distributed optimizer.
    p.offload = draw(2) && p.zeroStage > 0 ? Offload::optimizer : Offload::none;
    ModelFacts &m = config.model;
    for (int part : p.layers)
      m.layers += part;
    m.heads = 16;
    m.kvHeads = 8 << draw(2);
    m.hidden = 1024;
    m.headWidth = draw(2) ? 128 : 0;
    m.ffn = 2048;
    m.sequence = 4096;
    m.swiglu = draw(2);
    m.tied = draw(2);
    m.linearBias = draw(2);
    m.norm = static_cast<NormKind>(draw(2));
    m.position = static_cast<PositionKind>(draw(3));
    if (p.sequenceParallel && draw(2)) {
      m.experts = 32;
      m.expertsPerToken = 2;
      p.ep = p.dp;
    }
    config.precision = static_cast<Precision>(draw(3));
    TrainingKnobs &t = config.training;
    t.hiddenDropout = draw(2) * 0.25;
    t.fp32Gradients = config.precision == Precision::fp32 || draw(2);
    t.overlapGradReduce = draw(2);
    t.overlapParamGather = t.overlapGradReduce && p.zeroStage > 0;
    std::string text = writeMegatron(config).text;
    TrainerConfig again = readMegatron(text, p.devices());
    ASSERT_THAT(again.errors, IsEmpty()) << text;
    EXPECT_EQ(again.parallelism, p) << text;
    EXPECT_EQ(again.model, m) << text;
    EXPECT_EQ(again.training, t) << text;
    EXPECT_EQ(again.precision, config.precision) << text;
  }
}

} // namespace
