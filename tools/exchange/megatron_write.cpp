//===- megatron_write.cpp - Writing Megatron-LM's options -----------------===//

#include <algorithm>

#include <fmt/format.h>

#include "tools/exchange/megatron.h"
#include "tools/exchange/megatron_flags.h"
#include "tools/exchange/shell_words.h"

namespace mtplan::tools {

using planner::Offload;
using planner::Parallelism;
using planner::Precision;
using planner::Recompute;
using planner::ScheduleKind;

namespace {

class Writer {
public:
  explicit Writer(const TrainerConfig &written)
      : config(written), p(written.parallelism), m(written.model) {}

  Exported run() {
    model();
    degrees();
    stages();
    sharding();
    recompute();
    training();
    return std::move(out);
  }

private:
  void put(const char *name) {
    if (!out.text.empty())
      out.text += " \\\n";
    out.text += fmt::format("--{}", name);
  }
  template <typename Value> void put(const char *name, const Value &value) {
    put(name);
    out.text += ' ' + shellQuoted(fmt::format("{}", value));
  }
  void putUnless(const char *name, std::int64_t value, std::int64_t implied) {
    if (value != implied)
      put(name, value);
  }
  void putIf(bool condition, const char *name) {
    if (condition)
      put(name);
  }

  void model() {
    putUnless("num-layers", m.layers, 0);
    putUnless("hidden-size", m.hidden, 0);
    putUnless("ffn-hidden-size", m.ffn, 0);
    putUnless("num-attention-heads", m.heads, 0);
    putUnless("kv-channels", m.headWidth, 0);
    if (m.kvHeads != m.heads) {
      put("group-query-attention");
      put("num-query-groups", m.kvHeads);
    }
    if (m.sequence > 0) {
      put("seq-length", m.sequence);
      put("max-position-embeddings", m.sequence);
    }
    putUnless("vocab-size", m.vocab, 0);
    putUnless("make-vocab-size-divisible-by", m.vocabMultiple, 128);
    putIf(m.swiglu, "swiglu");
    const ModelFacts usual;
    if (m.norm == NormKind::rmsNorm)
      put("normalization", "RMSNorm");
    if (m.normEpsilon != usual.normEpsilon)
      put("norm-epsilon", m.normEpsilon);
    if (m.position != PositionKind::learned)
      put("position-embedding-type",
          m.position == PositionKind::rope ? "rope" : "none");
    if (m.rotaryBase != usual.rotaryBase)
      put("rotary-base", static_cast<std::int64_t>(m.rotaryBase));
    if (m.rotaryShare != usual.rotaryShare)
      put("rotary-percent", m.rotaryShare);
    putIf(!m.tied, "untie-embeddings-and-output-weights");
    putIf(!m.linearBias, "disable-bias-linear");
    putIf(m.qkvBias, "add-qkv-bias");
    if (m.experts > 0)
      experts();
  }

  void experts() {
    put("num-experts", m.experts);
    put("moe-router-topk", m.expertsPerToken);
    put("moe-token-dispatcher-type", "alltoall");
    if (m.expertCapacity > 0) {
      put("moe-expert-capacity-factor", m.expertCapacity);
      put("moe-pad-expert-input-to-capacity");
    }
    if (m.balanceLoss > 0)
      put("moe-aux-loss-coeff", m.balanceLoss);
  }

  void degrees() {
    put("tensor-model-parallel-size", p.tp);
    putIf(p.sequenceParallel, "sequence-parallel");
    put("pipeline-model-parallel-size", p.pp);
    if (p.cp > 1) {
      put("context-parallel-size", p.cp);
      put("cp-comm-type", "all_gather");
    }
    putUnless("expert-model-parallel-size", p.ep, 1);
  }

  // Returns the number of layers of each stage. Returns an empty list if a
  // stage has virtual stages of different sizes.
  std::vector<int> alikeChunks() const {
    auto count = static_cast<std::size_t>(p.pp);
    if (p.layers.size() != count * static_cast<std::size_t>(p.virtualStages))
      return {};
    std::vector<int> sums(count);
    for (std::size_t i = 0; i < p.layers.size(); ++i) {
      if (p.layers[i] != p.layers[i % count])
        return {};
      sums[i % count] += p.layers[i];
    }
    return sums;
  }

  void stages() {
    if (p.pp > 1 && (p.schedule == ScheduleKind::gpipe ||
                     p.schedule == ScheduleKind::zeroBubble))
      out.refuse(fmt::format("Megatron-LM has no schedule {}, which the {} "
                             "stages run; nearest: --schedule 1f1b",
                             nameOf(p.schedule), p.pp));
    std::vector<int> sums = alikeChunks();
    if (sums.empty() && !p.layers.empty())
      return put("pipeline-model-parallel-layout",
                 writePipelineLayout(p.layers));
    if (sums.size() > 1) {
      std::vector<int> inner(sums.begin() + 1, sums.end() - 1);
      int usual = inner.empty() ? sums.back() : inner.front();
      if (std::ranges::count(inner, usual) !=
              static_cast<std::ptrdiff_t>(inner.size()) ||
          std::ranges::count(sums, 0) != 0)
        return put("pipeline-model-parallel-layout",
                   writePipelineLayout(p.layers));
      putUnless("decoder-first-pipeline-num-layers", sums.front(), usual);
      putUnless("decoder-last-pipeline-num-layers", sums.back(), usual);
    }
    putUnless("num-virtual-stages-per-pipeline-rank", p.virtualStages, 1);
  }

  void sharding() {
    static const char *const strategies[] = {"no_shard", "optim", "optim_grads",
                                             "optim_grads_params"};
    // Megatron-LM offloads only with its distributed optimizer. For a single
    // replica, that optimizer has no other effect.
    bool offloads = p.offload == Offload::optimizer;
    if (p.zeroStage > 0 || (offloads && p.dp * p.cp == 1))
      put("use-distributed-optimizer");
    else if (offloads)
      out.refuse(fmt::format("Megatron-LM offloads an optimizer that is "
                             "sharded over the {} replicas, ZeRO stage 1, but "
                             "the plan has stage 0; nearest: --zero 1",
                             p.dp * p.cp));
    if (p.zeroStage > 1) {
      put("use-megatron-fsdp");
      put("data-parallel-sharding-strategy", strategies[p.zeroStage]);
      put("ckpt-format", "fsdp_dtensor"); // required by --use-megatron-fsdp
    }
    if (p.zeroStage > 0 && p.cp > 1)
      out.note(fmt::format("Megatron-LM shards the state over {} replicas "
                           "times {} context ranks, the plan over the replicas",
                           p.zeroRanks, p.cp));
    if (p.zeroStage > 0 && p.zeroRanks < p.dp)
      put("num-distributed-optimizer-instances", p.dp / p.zeroRanks);
    overlaps();
    putUnless("ddp-bucket-size", config.training.reduceBucket, 0);
    putIf(offloads, "optimizer-cpu-offload");
    putIf(offloads, "use-precision-aware-optimizer");
  }

  // Megatron-LM overlaps all-gathers of weights only with ZeRO, and only if
  // reductions of gradients overlap too. Megatron-LM overlaps sends only in
  // interleaved schedules.
  void overlaps() {
    const TrainingKnobs &t = config.training;
    putIf(t.overlapGradReduce, "overlap-grad-reduce");
    if (t.overlapParamGather && p.zeroStage > 0 && t.overlapGradReduce)
      put("overlap-param-gather");
    else if (t.overlapParamGather && p.zeroStage > 0)
      out.note("Megatron-LM overlaps the all-gathers of weights only if "
               "reductions of gradients overlap too");
    if (p.virtualStages > 1 && !t.overlapPipeline) {
      put("no-overlap-p2p-communication");
      if (p.pp == 2)
        out.refuse(fmt::format("Megatron-LM runs {} virtual stages on 2 stages "
                               "only if sends overlap compute, which the plan "
                               "leaves out; nearest: --overlap sends, or 3 "
                               "stages",
                               p.virtualStages));
    }
  }

  void recompute() {
    if (p.recompute == Recompute::none || p.recomputeLayers == 0)
      return;
    if (p.recompute == Recompute::selective) {
      put("recompute-granularity", "selective");
      if (p.recomputeLayers > 0)
        out.refuse(fmt::format(
            "Megatron-LM recomputes attention in all layers, but the plan in "
            "{} of a virtual stage; nearest: all layers",
            p.recomputeLayers));
      return;
    }
    put("recompute-granularity", "full");
    put("recompute-method", p.recomputeLayers < 0 ? "uniform" : "block");
    put("recompute-num-layers", std::max(1, p.recomputeLayers));
  }

  void training() {
    const TrainingKnobs &t = config.training;
    put("micro-batch-size", p.microBatch);
    put("global-batch-size", p.globalBatch);
    if (t.attentionDropout != 0.1)
      put("attention-dropout", t.attentionDropout);
    if (t.hiddenDropout != 0.1)
      put("hidden-dropout", t.hiddenDropout);
    if (config.precision == Precision::bf16) {
      put("bf16");
      putIf(!t.fp32Gradients, "grad-reduce-in-bf16");
    } else if (config.precision == Precision::fp16) {
      put("fp16");
      putIf(t.fp32Gradients, "accumulate-allreduce-grads-in-fp32");
    }
    if (t.gatherBucket > 0)
      out.note("Megatron-LM has no size for buckets of gathered parameters");
  }

  const TrainerConfig &config;
  const Parallelism &p;
  const ModelFacts &m;
  Exported out;
};

} // namespace

Exported writeMegatron(const TrainerConfig &config) {
  return Writer(config).run();
}

} // namespace mtplan::tools
