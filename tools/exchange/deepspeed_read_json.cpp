//===- deepspeed_read_json.cpp - Reading DeepSpeed's JSON -----------------===//

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "tools/exchange/batch_triple.h"
#include "tools/exchange/deepspeed.h"
#include "tools/exchange/deepspeed_fields.h"
#include "tools/exchange/trainer_check.h"

namespace mtplan::tools {

using json = base::Json;
using base::JsonFields;
using planner::Parallelism;
using planner::Precision;

namespace {

constexpr std::int64_t kMostRanks = 1 << 20;
constexpr std::int64_t kMostBatch = 1 << 20;

// Removes "auto", and turns whole numbers such as 5e8 into integers. Recursion
// is as deep as the text, whose depth is limited.
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
    JsonFields zero = section("zero_optimization");
    readDeepSpeedZero(zero, config);
    checkpointing();
    optimizer();
    batches();
    others();
    fields.rejectOthers();
  }

private:
  // Returns the members of a section; of an empty object if it is missing.
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
    p.pp = launch.stages;
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

  void checkpointing() {
    const json *value = fields.find("activation_checkpointing");
    if (!value)
      return;
    JsonFields a = section("activation_checkpointing");
    p.recompute = planner::Recompute::full;
    config.warnings.emplace_back(
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
                   {"scheduler",
                    "gradient_clipping",
                    "steps_per_print",
                    "dump_state",
                    "wall_clock_breakdown",
                    "tensorboard",
                    "wandb",
                    "csv_monitor",
                    "comet",
                    "autotuning",
                    "flops_profiler",
                    "checkpoint",
                    "comms_logger",
                    "prescale_gradients",
                    "gradient_predivide_factor",
                    "sparse_gradients",
                    "communication_data_type",
                    "seq_parallel_communication_data_type",
                    "zero_allow_untested_optimizer",
                    "zero_force_ds_cpu_optimizer",
                    "memory_breakdown",
                    "disable_allgather",
                    "dataloader_drop_last",
                    "data_efficiency",
                    "curriculum_learning",
                    "elasticity",
                    "aio",
                    "pipeline",
                    "timers",
                    "compile",
                    "amp",
                    "hybrid_engine",
                    "graph_harvesting",
                    "use_data_before_expert_parallelism",
                    "nebula",
                    "eigenvalue",
                    "quantize_training",
                    "$schema",
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
    config.errors.emplace_back(error.what());
  }
  return config;
}

} // namespace mtplan::tools
