//===- megatron_read.cpp - Reading Megatron-LM's options ------------------===//

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/exchange/megatron.h"
#include "tools/exchange/megatron_flags.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using planner::Parallelism;
using planner::Precision;
using planner::Recompute;

namespace {

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostSize = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kMostLayers = 10'000;

void readModel(const MegatronFlags &flags, TrainerConfig &config) {
  ModelFacts &m = config.model;
  auto size = [&](const char *name) {
    return flags.integer(name, 1, kMostSize, 0);
  };
  m.layers = flags.integer("num-layers", 1, kMostLayers, 0);
  m.hidden = size("hidden-size");
  m.heads = size("num-attention-heads");
  m.headWidth = size("kv-channels");
  if (m.heads > 0 && m.headWidth == m.hidden / m.heads &&
      m.hidden % m.heads == 0)
    m.headWidth = 0;
  m.sequence = size("seq-length");
  m.vocab = size("vocab-size");
  m.vocabMultiple =
      flags.integer("make-vocab-size-divisible-by", 1, kMostSize, 128);
  m.swiglu = flags.given("swiglu");
  m.linearBias = !flags.given("disable-bias-linear");
  m.qkvBias = !m.linearBias && flags.given("add-qkv-bias");
  m.normEpsilon = flags.number("norm-epsilon", 0, 1, m.normEpsilon);
  m.tied = !flags.given("untie-embeddings-and-output-weights");
  m.ffn = size("ffn-hidden-size");
  if (m.ffn == 0)
    m.ffn = m.swiglu ? m.hidden * 8 / 3 / 64 * 64 : 4 * m.hidden;
  m.kvHeads = m.heads;
  std::int64_t groups = size("num-query-groups");
  if (flags.given("group-query-attention"))
    m.kvHeads = groups > 0 ? groups : 1;
  else if (groups > 0)
    config.warn(
        "--num-query-groups: has no effect without --group-query-attention");
  if (flags.word("normalization", {"LayerNorm", "RMSNorm"}, "LayerNorm") ==
      "RMSNorm")
    m.norm = NormKind::rmsNorm;
  std::string position =
      flags.word("position-embedding-type",
                 {"learned_absolute", "rope", "none"}, "learned_absolute");
  if (position == "rope" || flags.given("use-rotary-position-embeddings"))
    m.position = PositionKind::rope;
  else if (position == "none")
    m.position = PositionKind::none;
  m.rotaryBase = flags.number("rotary-base", 1, 1e15, m.rotaryBase);
  m.rotaryShare = flags.number("rotary-percent", 0, 1, m.rotaryShare);
  std::int64_t positions = size("max-position-embeddings");
  if (positions > 0 && m.sequence > positions)
    config.fail(fmt::format("--seq-length {} is more than "
                            "--max-position-embeddings {}; nearest: {}",
                            m.sequence, positions, positions));
  m.experts = size("num-experts");
  if (m.experts > 0)
    m.expertsPerToken = flags.integer("moe-router-topk", 1, kMostSize, 2);
  else if (flags.given("moe-router-topk"))
    config.warn("--moe-router-topk: has no effect without --num-experts");
  m.expertCapacity = flags.number("moe-expert-capacity-factor", 0, 1e6, 0);
  m.balanceLoss = flags.number("moe-aux-loss-coeff", 0, 1e6, 0);
}

void readDegrees(const MegatronFlags &flags, TrainerConfig &config) {
  Parallelism &p = config.parallelism;
  auto ranks = [&](const char *name, std::int64_t fallback) {
    return static_cast<int>(flags.integer(name, 1, kMostRanks, fallback));
  };
  p.tp = ranks("tensor-model-parallel-size", 1);
  p.pp = ranks("pipeline-model-parallel-size", 1);
  p.cp = ranks("context-parallel-size", 1);
  p.ep = ranks("expert-model-parallel-size", 1);
  p.sequenceParallel = flags.given("sequence-parallel");
  int expertTp = ranks("expert-tensor-parallel-size", p.tp);
  if (expertTp != p.tp)
    config.fail(
        fmt::format("--expert-tensor-parallel-size {} differs from "
                    "--tensor-model-parallel-size {}; mtplan splits experts "
                    "over the tensor ranks of all other layers; nearest: {}",
                    expertTp, p.tp, p.tp));
}

void readSharding(const MegatronFlags &flags, TrainerConfig &config) {
  Parallelism &p = config.parallelism;
  static const std::vector<std::string> strategies = {
      "no_shard", "optim", "optim_grads", "optim_grads_params"};
  bool distributed = flags.given("use-distributed-optimizer");
  bool fsdp = flags.given("use-megatron-fsdp");
  std::string strategy =
      flags.word("data-parallel-sharding-strategy", strategies, "no_shard");
  if (fsdp) {
    for (std::size_t stage = 0; stage < strategies.size(); ++stage)
      if (strategy == strategies[stage])
        p.zeroStage = static_cast<int>(stage);
    if (distributed && p.zeroStage == 0)
      config.fail("--use-distributed-optimizer contradicts "
                  "--data-parallel-sharding-strategy no_shard; nearest: optim");
  } else {
    p.zeroStage = distributed ? 1 : 0;
    if (flags.given("data-parallel-sharding-strategy"))
      config.fail(
          "--data-parallel-sharding-strategy: needs --use-megatron-fsdp");
  }
  p.zeroRanks = p.zeroStage > 0 ? p.dp : 1;
  std::int64_t instances =
      flags.integer("num-distributed-optimizer-instances", 1, kMostRanks, 1);
  if (instances > 1 && p.zeroStage == 0)
    config.fail(fmt::format("--num-distributed-optimizer-instances {} needs "
                            "--use-distributed-optimizer; nearest without: 1",
                            instances));
  else if (p.dp % instances != 0)
    config.fail(
        fmt::format("--num-distributed-optimizer-instances {} does not divide "
                    "the {} data-parallel replicas; nearest that do: {}",
                    instances, p.dp, nearestDivisors(p.dp, instances)));
  else if (instances > 1)
    p.zeroRanks = static_cast<int>(p.dp / instances);
  if (flags.given("use-tp-pp-dp-mapping") && p.dp > 1 && p.pp > 1)
    config.fail(fmt::format(
        "--use-tp-pp-dp-mapping: mtplan numbers ranks tp-cp-ep-dp-pp, which "
        "differs for {} replicas and {} stages",
        p.dp, p.pp));
}

void readTraining(const MegatronFlags &flags, TrainerConfig &config) {
  TrainingKnobs &t = config.training;
  t.attentionDropout = flags.number("attention-dropout", 0, 0.999999, 0.1);
  t.hiddenDropout = flags.number("hidden-dropout", 0, 0.999999, 0.1);
  t.overlapGradReduce = flags.given("overlap-grad-reduce");
  t.overlapParamGather = flags.given("overlap-param-gather");
  t.overlapPipeline = !flags.given("no-overlap-p2p-communication");
  t.reduceBucket = flags.integer("ddp-bucket-size", 1, kMostSize, 0);
  if (t.overlapParamGather && !t.overlapGradReduce)
    config.fail("--overlap-param-gather: needs --overlap-grad-reduce");
  if (t.overlapParamGather && config.parallelism.zeroStage == 0)
    config.fail("--overlap-param-gather: needs --use-distributed-optimizer or "
                "--use-megatron-fsdp that shards");
  if (flags.given("fp16") && flags.given("bf16"))
    config.fail("--fp16 contradicts --bf16; give one of them");
  config.precision = flags.given("bf16")   ? Precision::bf16
                     : flags.given("fp16") ? Precision::fp16
                                           : Precision::fp32;
  // By default, Megatron-LM keeps gradients in fp32 if weights are in bf16.
  bool reduced = flags.given("grad-reduce-in-bf16");
  bool full = flags.given("accumulate-allreduce-grads-in-fp32");
  if (reduced && full)
    config.fail("--grad-reduce-in-bf16 contradicts "
                "--accumulate-allreduce-grads-in-fp32; give one of them");
  if (reduced && config.precision != Precision::bf16)
    config.fail("--grad-reduce-in-bf16: needs --bf16");
  t.fp32Gradients = full || (config.precision != Precision::fp16 && !reduced);
  flags.word("optimizer", {"adam"}, "adam");
  if (flags.given("optimizer-cpu-offload")) {
    config.parallelism.offload = planner::Offload::optimizer;
    if (double part = flags.number("optimizer-offload-fraction", 0, 1, 1);
        part != 1)
      config.fail(
          fmt::format("--optimizer-offload-fraction {}: mtplan offloads all of "
                      "the optimizer or nothing; nearest: 1",
                      part));
  } else if (flags.given("optimizer-offload-fraction")) {
    config.warn("--optimizer-offload-fraction: has no effect without "
                "--optimizer-cpu-offload");
  }
}

void readBatches(const MegatronFlags &flags, TrainerConfig &config) {
  Parallelism &p = config.parallelism;
  if (!flags.given("micro-batch-size"))
    config.fail("--micro-batch-size: is missing");
  p.microBatch = flags.integer("micro-batch-size", 1, kMostSize, 1);
  p.globalBatch =
      flags.integer("global-batch-size", 1, kMostSize, p.microBatch * p.dp);
  if (flags.given("rampup-batch-size"))
    config.warn(
        "--rampup-batch-size: mtplan plans the batch that it ends with");
}

void readSelective(const MegatronFlags &flags, TrainerConfig &config) {
  config.parallelism.recompute = Recompute::selective;
  for (const char *other : {"recompute-method", "recompute-num-layers"})
    if (flags.given(other))
      config.fail(fmt::format("--{}: contradicts selective recomputation; it "
                              "needs --recompute-granularity full",
                              other));
  std::vector<std::string> modules = flags.list("recompute-modules");
  if (!modules.empty() && modules != std::vector<std::string>{"core_attn"})
    config.fail(
        fmt::format("--recompute-modules {}: mtplan's selective recomputation "
                    "is of the core of attention; nearest: core_attn",
                    fmt::join(modules, " ")));
}

void readFull(const MegatronFlags &flags, TrainerConfig &config) {
  Parallelism &p = config.parallelism;
  p.recompute = Recompute::full;
  if (flags.given("recompute-modules"))
    config.fail(
        "--recompute-modules: contradicts --recompute-granularity full");
  for (const char *needed : {"recompute-method", "recompute-num-layers"})
    if (!flags.given(needed))
      config.fail(fmt::format(
          "--{}: is missing; --recompute-granularity full needs it", needed));
  std::string method =
      flags.word("recompute-method", {"uniform", "block"}, "uniform");
  std::int64_t count = flags.integer("recompute-num-layers", 1, kMostLayers, 1);
  if (method == "uniform") {
    if (count > 1)
      config.fail(fmt::format(
          "--recompute-num-layers {} with --recompute-method uniform keeps the "
          "input of every {} layers, mtplan that of each layer; nearest: 1",
          count, count));
    return;
  }
  std::int64_t most = 0;
  for (int part : p.layers)
    most = std::max<std::int64_t>(most, part);
  if (most > 0 && count > most)
    config.fail(fmt::format("--recompute-num-layers {} is more than the {} "
                            "layers of a virtual stage; nearest: {}",
                            count, most, most));
  p.recomputeLayers = static_cast<int>(count);
}

void readRecompute(const MegatronFlags &flags, TrainerConfig &config) {
  std::string granularity =
      flags.word("recompute-granularity", {"full", "selective"}, "");
  bool shorthand = flags.given("recompute-activations");
  if (shorthand && granularity == "full")
    config.fail("--recompute-activations means selective and contradicts "
                "--recompute-granularity full");
  else if (shorthand || granularity == "selective")
    readSelective(flags, config);
  else if (granularity == "full")
    readFull(flags, config);
  else if (!flags.given("recompute-granularity"))
    for (const char *other :
         {"recompute-method", "recompute-num-layers", "recompute-modules"})
      if (flags.given(other))
        config.fail(fmt::format("--{}: needs --recompute-granularity", other));
}

const TrainerNames &naming() {
  static const TrainerNames names = {
      .assign = " ",
      .tp = "--tensor-model-parallel-size",
      .pp = "--pipeline-model-parallel-size",
      .cp = "--context-parallel-size",
      .ep = "--expert-model-parallel-size",
      .sequenceParallel = "--sequence-parallel",
      .virtualStages = "--num-virtual-stages-per-pipeline-rank",
      .microBatch = "--micro-batch-size",
      .globalBatch = "--global-batch-size",
      .layers = "--num-layers",
      .hidden = "--hidden-size",
      .heads = "--num-attention-heads",
      .kvHeads = "--num-query-groups",
      .ffn = "--ffn-hidden-size",
      .sequence = "--seq-length",
      .experts = "--num-experts",
      .topk = "--moe-router-topk",
  };
  return names;
}

} // namespace

TrainerConfig readMegatron(const std::string &text, std::int64_t gpus) {
  TrainerConfig config;
  std::vector<ShellWord> words = splitShellWords(text, config.errors);
  if (!config.errors.empty())
    return config; // later checks would report misleading names
  MegatronFlags flags(words, config.warnings, config.errors);
  readModel(flags, config);
  readDegrees(flags, config);
  std::size_t before = config.errors.size();
  shareDevices(config, gpus, naming());
  bool shared = config.errors.size() == before;
  readSharding(flags, config);
  readTraining(flags, config);
  readBatches(flags, config);
  readMegatronPipeline(flags, config);
  readRecompute(flags, config);
  checkSplits(config, naming());
  if (shared)
    checkBatches(config, naming());
  return config;
}

} // namespace mtplan::tools
