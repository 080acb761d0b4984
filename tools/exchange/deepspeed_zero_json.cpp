//===- deepspeed_zero_json.cpp - The section zero_optimization ------------===//

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "tools/exchange/deepspeed_fields.h"
#include "tools/text/nearest_numbers.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;

void noteIrrelevant(JsonFields &from, const std::vector<std::string> &keys,
                    TrainerConfig &config) {
  for (const std::string &key : keys)
    if (from.find(key))
      config.warnings.push_back(from.pointerTo(key) +
                                ": changes nothing that is planned");
}

void refuseIfSet(JsonFields &from, const std::string &key,
                 const std::string &why) {
  const json *value = from.find(key);
  if (value && *value != false && *value != 0)
    from.fail(key, "not planned; " + why);
}

namespace {

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostSize = (std::int64_t{1} << 31) - 1;

class Zero {
public:
  Zero(JsonFields &section, TrainerConfig &read)
      : z(section), config(read), p(read.parallelism) {}

  void run() {
    p.zeroStage = static_cast<int>(z.integer("stage", 0, 3, 0));
    p.zeroRanks = p.zeroStage > 0 ? p.dp : 1;
    // DeepSpeed's default is true in stage 3.
    bool overlaps = z.boolean("overlap_comm", p.zeroStage == 3);
    config.training.overlapGradReduce = overlaps;
    config.training.overlapParamGather = overlaps && p.zeroStage == 3;
    config.training.reduceBucket =
        z.integer("reduce_bucket_size", 1, kMostSize, 0);
    config.training.gatherBucket =
        z.integer("allgather_bucket_size", 1, kMostSize, 0);
    shards();
    offload();
    for (const char *key :
         {"zero_quantized_weights", "zero_quantized_gradients",
          "zero_quantized_nontrainable_weights", "zeropp_loco_param"})
      refuseIfSet(z, key, "mtplan moves weights and gradients unquantized");
    noteIrrelevant(z,
                   {"allgather_partitions",
                    "reduce_scatter",
                    "contiguous_gradients",
                    "sub_group_size",
                    "elastic_checkpoint",
                    "stage3_max_live_parameters",
                    "stage3_max_reuse_distance",
                    "stage3_prefetch_bucket_size",
                    "stage3_param_persistence_threshold",
                    "stage3_model_persistence_threshold",
                    "stage3_gather_16bit_weights_on_model_save",
                    "stage3_gather_fp16_weights_on_model_save",
                    "stage3_module_granularity_threshold",
                    "load_from_fp32_weights",
                    "ignore_unused_parameters",
                    "round_robin_gradients",
                    "memory_efficient_linear",
                    "use_multi_rank_bucket_allreduce",
                    "legacy_stage1",
                    "mics_hierarchical_params_gather",
                    "use_all_reduce_for_fetch_params",
                    "pipeline_loading_checkpoint",
                    "override_module_apply",
                    "log_trace_cache_warnings"},
                   config);
    z.rejectOthers();
  }

private:
  // Reads the number of replicas that hold a copy of the shards.
  void shards() {
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

  // Reads the device of one kind of state, none or cpu.
  bool onHost(const std::string &key) {
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

  void offload() {
    if (onHost("offload_optimizer"))
      p.offload = planner::Offload::optimizer;
    if (onHost("offload_param"))
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

  JsonFields &z;
  TrainerConfig &config;
  planner::Parallelism &p;
};

} // namespace

void readDeepSpeedZero(JsonFields &section, TrainerConfig &config) {
  Zero(section, config).run();
}

} // namespace mtplan::tools
