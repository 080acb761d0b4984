//===- deepspeed_json.cpp - DeepSpeed's JSON ------------------------------===//

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "tools/exchange/deepspeed.h"
#include "tools/exchange/trainer_config.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;
using nlohmann::ordered_json;
using planner::Parallelism;
using planner::Precision;
using planner::Recompute;

namespace {

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostBatch = 1 << 20;
constexpr std::int64_t kMostSize = (std::int64_t{1} << 31) - 1;

// Marks `key` as known, and adds an error if its value is neither false nor 0.
void refuseIfSet(JsonFields &from, const std::string &key,
                 const std::string &why) {
  const json *value = from.find(key);
  if (value && *value != false && *value != 0)
    from.fail(key, "not planned; " + why);
}

// Removes members with the value "auto", and turns whole numbers such as 5e8
// into integers. The parser limits the depth of the recursion.
void normalise(json &value) {
  if (value.is_object())
    for (auto member = value.begin(); member != value.end();)
      if (*member == "auto")
        member = value.erase(member);
      else
        normalise(*member++);
  else if (value.is_array())
    for (json &element : value)
      normalise(element);
  else if (value.is_number_float())
    if (auto number = value.get<double>();
        std::abs(number) < 9e15 && number == std::floor(number))
      value = static_cast<std::int64_t>(number);
}

class Reader {
public:
  Reader(const json &root, const Launch &given, TrainerConfig &read)
      : fields(root, "", read.errors), launch(given), config(read),
        p(read.parallelism) {}

  void run() {
    degrees();
    precision();
    zero();
    checkpointing();
    optimizer();
    batches();
    others();
    fields.rejectOthers();
  }

private:
  JsonFields section(const std::string &key) {
    static const json empty = json::object();
    const json *value = fields.find(key);
    return {value ? *value : empty, fields.pointerTo(key), config.errors};
  }

  void degrees() {
    JsonFields tensor = section("tensor_parallel");
    p.tp = static_cast<int>(tensor.integer("autotp_size", 0, kMostRanks, 0));
    p.tp = std::max(p.tp, 1); // 0 turns tensor parallelism off
    noteIrrelevant(tensor, {"tp_overlap_comm", "tensor_parallel"}, config);
    tensor.rejectOthers();
    p.cp = static_cast<int>(
        fields.integer("sequence_parallel_size", 1, kMostRanks, 1));
    if (p.cp > 1)
      config.warn("/sequence_parallel_size: DeepSpeed's ranks exchange heads; "
                  "planned as ranks that gather keys and values");
    stages();
    std::size_t before = config.errors.size();
    TrainerNames names;
    names.assign = ": ";
    names.tp = "/tensor_parallel/autotp_size";
    names.pp = "pipeline stages";
    names.cp = "/sequence_parallel_size";
    names.sequence = "sequence length";
    config.model.sequence = launch.sequence;
    config.model.layers = launch.layers;
    shareDevices(config, launch.gpus, names);
    shared = config.errors.size() == before;
    checkSplits(config, names);
    std::int64_t replicas =
        fields.integer("data_parallel_size", 1, kMostRanks, p.dp);
    if (shared && replicas != p.dp)
      fields.fail("data_parallel_size",
                  fmt::format("{} contradicts the {} replicas that {} GPUs "
                              "make; nearest: {}",
                              replicas, p.dp, launch.gpus, p.dp));
  }

  // DeepSpeed accepts this section, but takes the number of stages from the
  // code. writeDeepSpeed writes the number into this section.
  void stages() {
    JsonFields pipeline = section("pipeline");
    config.training.overlapPipeline = false; // stages wait for messages
    p.pp = static_cast<int>(
        pipeline.integer("stages", 1, kMostRanks, launch.stages));
    if (launch.stages > 1 && p.pp != launch.stages)
      pipeline.fail("stages", fmt::format("{} contradicts the {} pipeline "
                                          "stages asked for; nearest: {}",
                                          p.pp, launch.stages, launch.stages));
    noteIrrelevant(pipeline,
                   {"partition", "seed_layers",
                    "activation_checkpoint_interval", "pipe_partitioned",
                    "grad_partitioned", "use_reentrant"},
                   config);
    pipeline.rejectOthers();
  }

  void precision() {
    JsonFields half = section("fp16");
    JsonFields brain = section("bf16");
    bool fp16 = half.boolean("enabled", false);
    bool bf16 = brain.boolean("enabled", false);
    noteIrrelevant(half,
                   {"auto_cast", "loss_scale", "initial_scale_power",
                    "loss_scale_window", "hysteresis", "consecutive_hysteresis",
                    "min_loss_scale", "fp16_master_weights_and_grads",
                    "master_weights_and_grads"},
                   config);
    noteIrrelevant(brain,
                   {"immediate_grad_update", "check_grad_overflow",
                    "bf16_master_weights_and_grads"},
                   config);
    half.rejectOthers();
    brain.rejectOthers();
    if (fp16 && bf16)
      fields.fail("bf16", "contradicts /fp16; enable one of them");
    config.precision = bf16   ? Precision::bf16
                       : fp16 ? Precision::fp16
                              : Precision::fp32;
    JsonFields types = section("data_types");
    bool wide =
        types.oneOf("grad_accum_dtype", {"fp32", "fp16", "bf16"}, 1) == 0;
    types.rejectOthers();
    config.training.fp32Gradients = wide || config.precision == Precision::fp32;
  }

  // Reads the options of ZeRO. The number of replicas, p.dp, must be set
  // before.
  void zero() {
    JsonFields z = section("zero_optimization");
    p.zeroStage = static_cast<int>(z.integer("stage", 0, 3, 0));
    p.zeroRanks = p.zeroStage > 0 ? p.dp : 1;
    bool overlaps = z.boolean("overlap_comm", p.zeroStage == 3);
    config.training.overlapGradReduce = overlaps;
    config.training.overlapParamGather = overlaps && p.zeroStage == 3;
    config.training.reduceBucket =
        z.integer("reduce_bucket_size", 1, kMostSize, 0);
    config.training.gatherBucket =
        z.integer("allgather_bucket_size", 1, kMostSize, 0);
    shards(z);
    offload(z);
    for (const char *key :
         {"zero_quantized_weights", "zero_quantized_gradients",
          "zero_quantized_nontrainable_weights", "zeropp_loco_param"})
      refuseIfSet(z, key, "mtplan moves weights and gradients unquantized");
    noteIrrelevant(z,
                   {"allgather_partitions", "reduce_scatter",
                    "contiguous_gradients", "sub_group_size",
                    "elastic_checkpoint"},
                   config);
    noteIrrelevant(z,
                   {"stage3_max_live_parameters", "stage3_max_reuse_distance",
                    "stage3_prefetch_bucket_size",
                    "stage3_param_persistence_threshold",
                    "stage3_model_persistence_threshold",
                    "stage3_gather_16bit_weights_on_model_save",
                    "stage3_gather_fp16_weights_on_model_save",
                    "stage3_module_granularity_threshold"},
                   config);
    noteIrrelevant(z,
                   {"load_from_fp32_weights", "ignore_unused_parameters",
                    "round_robin_gradients", "memory_efficient_linear",
                    "use_multi_rank_bucket_allreduce", "legacy_stage1",
                    "mics_hierarchical_params_gather",
                    "use_all_reduce_for_fetch_params",
                    "pipeline_loading_checkpoint", "override_module_apply",
                    "log_trace_cache_warnings"},
                   config);
    z.rejectOthers();
  }

  void shards(JsonFields &z) {
    std::int64_t secondary =
        z.integer("zero_hpz_partition_size", 1, kMostRanks, 1);
    if (secondary > 1 && p.dp % secondary != 0)
      z.fail("zero_hpz_partition_size",
             fmt::format("{} does not divide the {} data-parallel replicas; "
                         "nearest that do: {}",
                         secondary, p.dp, nearestDivisors(p.dp, secondary)));
    else if (secondary > 1)
      z.fail("zero_hpz_partition_size",
             fmt::format("not planned; {} keeps a second copy of the weights, "
                         "mtplan one; nearest: 1, or \"mics_shard_size\": {}, "
                         "which splits all state over {} replicas",
                         secondary, secondary, secondary));
    std::int64_t shard = z.integer("mics_shard_size", -1, kMostRanks, -1);
    if (shard < 1)
      return;
    if (p.zeroStage != 3)
      z.fail("mics_shard_size",
             fmt::format("{} needs /zero_optimization/stage 3, but it is {}; "
                         "nearest: 3",
                         shard, p.zeroStage));
    else if (p.dp % shard != 0)
      z.fail("mics_shard_size",
             fmt::format("{} does not divide the {} data-parallel replicas; "
                         "nearest that do: {}",
                         shard, p.dp, nearestDivisors(p.dp, shard)));
    else
      p.zeroRanks = static_cast<int>(shard);
  }

  bool onHost(JsonFields &z, const std::string &key) {
    const json *value = z.find(key);
    if (!value)
      return false;
    JsonFields o(*value, z.pointerTo(key), config.errors);
    std::size_t device = o.oneOf("device", {"none", "cpu", "nvme"}, 0);
    if (device == 2)
      o.fail("device", "\"nvme\" is not planned; mtplan offloads to the host's "
                       "memory; nearest: \"cpu\"");
    double part = o.number("ratio", {0.0, 1.0, false}, 1.0);
    if (device == 1 && part != 1.0)
      o.fail("ratio", fmt::format("{} is not planned; mtplan offloads all or "
                                  "nothing; nearest: 1",
                                  part));
    noteIrrelevant(o,
                   {"nvme_path", "pin_memory", "buffer_count", "buffer_size",
                    "max_in_cpu", "pipeline", "pipeline_read", "pipeline_write",
                    "fast_init"},
                   config);
    o.rejectOthers();
    return device == 1;
  }

  void offload(JsonFields &z) {
    if (onHost(z, "offload_optimizer"))
      p.offload = planner::Offload::optimizer;
    if (onHost(z, "offload_param"))
      z.fail("offload_param",
             "not planned; mtplan offloads the optimizer only; "
             "nearest: /zero_optimization/offload_optimizer");
    if (z.boolean("cpu_offload", false))
      z.fail("cpu_offload", "DeepSpeed has dropped it; nearest: "
                            "\"offload_optimizer\": {\"device\": \"cpu\"}");
    if (p.offload == planner::Offload::optimizer && p.zeroStage == 0)
      z.fail("offload_optimizer",
             "needs /zero_optimization/stage above 0, but it is 0; nearest: 1");
  }

  void checkpointing() {
    const json *value = fields.find("activation_checkpointing");
    if (!value)
      return;
    JsonFields a = section("activation_checkpointing");
    p.recompute = planner::Recompute::full;
    config.warn(
        "/activation_checkpointing: DeepSpeed recomputes where the model's "
        "code asks for it; planned as every layer");
    if (a.boolean("cpu_checkpointing", false))
      a.fail("cpu_checkpointing",
             "not planned; mtplan offloads the optimizer only");
    noteIrrelevant(a,
                   {"partition_activations", "number_checkpoints",
                    "contiguous_memory_optimization",
                    "synchronize_checkpoint_boundary", "profile"},
                   config);
    a.rejectOthers();
  }

  void optimizer() {
    JsonFields o = section("optimizer");
    std::string type = o.text("type", "AdamW"), lower = type;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    if (lower != "adam" && lower != "adamw")
      o.fail("type", fmt::format("\"{}\" is not planned; nearest: \"AdamW\"",
                                 type.substr(0, 60)));
    noteIrrelevant(o, {"params", "legacy_fusion"}, config);
    o.rejectOthers();
  }

  void batches() {
    BatchTriple triple{{"/train_batch_size"},
                       {"/train_micro_batch_size_per_gpu"},
                       {"/gradient_accumulation_steps"}};
    auto read = [&](NamedCount &count) {
      count.value = fields.integer(count.name.substr(1), 1, kMostBatch, 0);
    };
    std::size_t before = config.errors.size();
    read(triple.global);
    read(triple.micro);
    read(triple.steps);
    if (triple.global.value == 0 && triple.steps.value * launch.microBatch == 0)
      triple.global.value = launch.globalBatch;
    if (triple.micro.value == 0 &&
        triple.steps.value * triple.global.value == 0)
      triple.micro.value = launch.microBatch;
    if (!shared || config.errors.size() != before ||
        !completeTriple(triple, p.dp, config.errors))
      return;
    p.globalBatch = triple.global.value;
    p.microBatch = triple.micro.value;
  }

  void others() {
    for (const char *key :
         {"sparse_attention", "compression_training", "progressive_layer_drop"})
      refuseIfSet(fields, key,
                  "mtplan plans full attention in dense layers that "
                  "all run");
    noteIrrelevant(fields,
                   {"scheduler", "gradient_clipping", "steps_per_print",
                    "dump_state", "wall_clock_breakdown", "tensorboard",
                    "wandb", "csv_monitor", "comet", "autotuning",
                    "flops_profiler", "checkpoint", "comms_logger"},
                   config);
    noteIrrelevant(
        fields,
        {"prescale_gradients", "gradient_predivide_factor", "sparse_gradients",
         "communication_data_type", "seq_parallel_communication_data_type",
         "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer",
         "memory_breakdown", "disable_allgather", "dataloader_drop_last",
         "data_efficiency", "curriculum_learning", "elasticity"},
        config);
    noteIrrelevant(fields,
                   {"aio", "timers", "compile", "amp", "hybrid_engine",
                    "graph_harvesting", "use_data_before_expert_parallelism",
                    "nebula", "eigenvalue", "quantize_training", "$schema",
                    "comment"},
                   config);
  }

  JsonFields fields;
  const Launch &launch;
  TrainerConfig &config;
  Parallelism &p;
  bool shared = false;
};

} // namespace

TrainerConfig readDeepSpeed(const std::string &text, const Launch &launch) {
  TrainerConfig config;
  try {
    json root = base::parseJson(text, {.members = 10'000});
    normalise(root);
    Reader(root, launch, config).run();
  } catch (const base::JsonError &error) {
    config.fail(error.what());
  }
  return config;
}

namespace {

// Adds a note for each choice that DeepSpeed takes from code.
void addNotes(const Parallelism &p, Exported &out) {
  if (p.pp > 1)
    out.note(fmt::format("DeepSpeed takes {} pipeline stages from the code: "
                         "PipelineModule(num_stages={}){}{}",
                         p.pp, p.pp, p.layers.empty() ? "" : ", with layers ",
                         fmt::join(p.layers, ", ")));
  if (p.ep > 1)
    out.note(fmt::format(
        "DeepSpeed takes {} expert ranks from the code: MoE(ep_size={})", p.ep,
        p.ep));
  if (p.tp > 1)
    out.note(fmt::format("DeepSpeed counts the {} tensor ranks as replicas, "
                         "and so reports a batch of {} for the plan's {}; it "
                         "chooses by itself whether they split the embedding",
                         p.tp, p.globalBatch * p.tp, p.globalBatch));
  if (p.recompute == Recompute::selective)
    out.note("DeepSpeed recomputes where the model's code asks for it; here: "
             "the core of attention");
  if (p.recompute == Recompute::full && p.recomputeLayers >= 0)
    out.note(fmt::format("DeepSpeed recomputes where the model's code "
                         "asks for it; here: {} layers a part",
                         p.recomputeLayers));
}

void refuseOthers(const Parallelism &p, Exported &out) {
  if (p.pp > 1 && p.schedule != planner::ScheduleKind::oneForwardOneBackward)
    out.refuse(fmt::format("DeepSpeed runs its stages by the schedule 1f1b, "
                           "but the plan has {}; nearest: --schedule 1f1b",
                           nameOf(p.schedule)));
  if (p.pp > 1 && p.zeroStage > 1)
    out.refuse(fmt::format("DeepSpeed's pipeline has at most ZeRO stage 1, but "
                           "the {} stages have {}; nearest: --zero 1",
                           p.pp, p.zeroStage));
  if (p.pp > 1 && p.tp > 1)
    out.refuse(fmt::format("DeepSpeed's automatic tensor parallelism has no "
                           "pipeline, but the plan has {} tensor ranks and {} "
                           "stages; nearest: --tp 1 or --pp 1",
                           p.tp, p.pp));
  if (p.cp > 1)
    out.refuse(fmt::format("DeepSpeed's sequence ranks exchange heads by "
                           "all-to-all, but the plan's {} context ranks gather "
                           "keys and values; nearest: --cp 1",
                           p.cp));
  if (p.sequenceParallel)
    refuseSequenceSplit(p.tp, "DeepSpeed", out);
  if (p.zeroStage > 0 && p.zeroRanks < p.dp)
    out.refuse(fmt::format("DeepSpeed shards the state over all {} replicas, "
                           "but the plan over {}; nearest: --zero-ranks all",
                           p.dp, p.zeroRanks));
  if (p.offload == planner::Offload::optimizer && p.zeroStage == 0 &&
      p.dp * p.cp > 1)
    out.refuse(fmt::format("DeepSpeed offloads an optimizer that is sharded "
                           "over the {} replicas, ZeRO stage 1, but the plan "
                           "has stage 0; nearest: --zero 1",
                           p.dp * p.cp));
}

ordered_json zeroSection(const TrainerConfig &config) {
  const Parallelism &p = config.parallelism;
  ordered_json zero;
  // DeepSpeed offloads only with ZeRO 1 or higher. For a single replica, ZeRO 1
  // equals ZeRO 0.
  bool alone = p.dp * p.cp == 1 && p.offload == planner::Offload::optimizer;
  zero["stage"] = alone ? std::max(p.zeroStage, 1) : p.zeroStage;
  zero["overlap_comm"] = config.training.overlapGradReduce;
  if (config.training.reduceBucket > 0)
    zero["reduce_bucket_size"] = config.training.reduceBucket;
  if (config.training.gatherBucket > 0)
    zero["allgather_bucket_size"] = config.training.gatherBucket;
  if (p.offload == planner::Offload::optimizer)
    zero["offload_optimizer"] = {{"device", "cpu"}};
  return zero;
}

} // namespace

Exported writeDeepSpeed(const TrainerConfig &config) {
  const Parallelism &p = config.parallelism;
  ordered_json root;
  // With tensor parallelism, DeepSpeed computes the global batch from the
  // number of all ranks instead of the number of replicas, and rejects a file
  // that states another global batch.
  if (p.tp == 1)
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
  if (p.pp > 1)
    root["pipeline"] = {{"stages", p.pp}};
  if (p.recompute == Recompute::full)
    root["activation_checkpointing"] = ordered_json::object();
  Exported out;
  out.text = root.dump(2) + '\n';
  addNotes(p, out);
  refuseOthers(p, out);
  return out;
}

} // namespace mtplan::tools
