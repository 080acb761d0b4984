//===- deepspeed_write_json.cpp - Writing DeepSpeed's JSON ----------------===//

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/exchange/deepspeed.h"

namespace mtplan::tools {

using nlohmann::ordered_json;
using planner::Parallelism;
using planner::Precision;
using planner::Recompute;

namespace {

// Adds notes on choices that DeepSpeed reads from code, or does not support.
void addNotes(const TrainerConfig &config, std::vector<std::string> &notes) {
  const Parallelism &p = config.parallelism;
  if (p.pp > 1)
    notes.push_back(fmt::format("DeepSpeed takes {} pipeline stages from the "
                                "code: PipelineModule(num_stages={})",
                                p.pp, p.pp));
  if (p.virtualStages > 1)
    notes.push_back(fmt::format("DeepSpeed has one chunk a stage, not {}",
                                p.virtualStages));
  if (p.ep > 1)
    notes.push_back(fmt::format(
        "DeepSpeed takes {} expert ranks from the code: MoE(ep_size={})", p.ep,
        p.ep));
  if (p.sequenceParallel)
    notes.emplace_back("DeepSpeed's tensor ranks do not split the sequence");
  if (p.zeroStage > 0 && p.zeroStage < 3 && p.zeroRanks < p.dp)
    notes.push_back(
        fmt::format("DeepSpeed splits stage {} over all {} replicas, not {}",
                    p.zeroStage, p.dp, p.zeroRanks));
  if (p.offload == planner::Offload::optimizer && p.zeroStage == 0 &&
      p.dp * p.cp > 1)
    notes.emplace_back("DeepSpeed offloads from stage 1 on, where replicas "
                       "share the optimizer's state");
  if (p.recompute == Recompute::selective)
    notes.emplace_back("DeepSpeed recomputes where the model's code asks for "
                       "it; here: the core of attention");
  if (p.recompute == Recompute::full && p.recomputeLayers >= 0)
    notes.push_back(fmt::format("DeepSpeed recomputes where the model's code "
                                "asks for it; here: {} layers a part",
                                p.recomputeLayers));
}

ordered_json zeroSection(const TrainerConfig &config) {
  const Parallelism &p = config.parallelism;
  ordered_json zero;
  // DeepSpeed offloads only with ZeRO 1 or higher, which equals ZeRO 0 for a
  // single replica.
  bool alone = p.dp * p.cp == 1 && p.offload == planner::Offload::optimizer;
  zero["stage"] = alone ? std::max(p.zeroStage, 1) : p.zeroStage;
  zero["overlap_comm"] = config.training.overlapGradReduce;
  if (config.training.reduceBucket > 0)
    zero["reduce_bucket_size"] = config.training.reduceBucket;
  if (config.training.gatherBucket > 0)
    zero["allgather_bucket_size"] = config.training.gatherBucket;
  if (p.zeroStage == 3 && p.zeroRanks < p.dp)
    zero["mics_shard_size"] = p.zeroRanks;
  if (p.offload == planner::Offload::optimizer)
    zero["offload_optimizer"] = {{"device", "cpu"}};
  return zero;
}

} // namespace

Exported writeDeepSpeed(const TrainerConfig &config) {
  const Parallelism &p = config.parallelism;
  ordered_json root;
  root["train_batch_size"] = p.globalBatch;
  root["train_micro_batch_size_per_gpu"] = p.microBatch;
  root["gradient_accumulation_steps"] = p.microBatches();
  if (config.precision == Precision::bf16)
    root["bf16"] = {{"enabled", true}};
  if (config.precision == Precision::fp16)
    root["fp16"] = {{"enabled", true}};
  if (config.training.fp32Gradients && config.precision != Precision::fp32)
    root["data_types"] = {{"grad_accum_dtype", "fp32"}};
  root["zero_optimization"] = zeroSection(config);
  if (p.tp > 1)
    root["tensor_parallel"] = {{"autotp_size", p.tp}};
  if (p.cp > 1)
    root["sequence_parallel_size"] = p.cp;
  if (p.recompute == Recompute::full)
    root["activation_checkpointing"] = ordered_json::object();
  Exported out;
  out.text = root.dump(2) + '\n';
  addNotes(config, out.notes);
  return out;
}

} // namespace mtplan::tools
