//===- torchtitan.cpp - torchtitan's rules and TOML, accelerate's YAML ----===//

#include "tools/exchange/torchtitan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

namespace mtplan::tools {

using planner::Parallelism;
using planner::Precision;
using planner::Recompute;
using planner::ScheduleKind;

namespace {

struct Row {
  std::string_view name;
  ScheduleKind kind;
  bool manyChunks;
  std::string_view note;
};

constexpr std::string_view kOneChunk =
    "planned as ZB-H1, which has one chunk a stage";

constexpr std::array kRows = {
    Row{"GPipe", ScheduleKind::gpipe, false, ""},
    Row{"1F1B", ScheduleKind::oneForwardOneBackward, false, ""},
    Row{"Interleaved1F1B", ScheduleKind::interleaved, true, ""},
    Row{"InterleavedZeroBubble", ScheduleKind::zeroBubble, false, kOneChunk},
    Row{"ZBVZeroBubble", ScheduleKind::zeroBubble, false, kOneChunk},
    Row{"ZBV", ScheduleKind::zeroBubble, false, kOneChunk},
};

bool sameWord(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::string modules(const std::vector<int> &layers) {
  std::string text = "module_fqns_per_model_part = [\n";
  int layer = 0;
  for (std::size_t part = 0; part < layers.size(); ++part) {
    std::string names = part == 0 ? "\"tok_embeddings\"" : "";
    for (int i = 0; i < layers[part]; ++i)
      names +=
          fmt::format("{}\"layers.{}\"", names.empty() ? "" : ", ", layer++);
    if (part + 1 == layers.size())
      names += fmt::format("{}\"norm\", \"output\"", names.empty() ? "" : ", ");
    text += fmt::format("  [{}],\n", names);
  }
  return text + "]\n";
}

// Refuses choices that FSDP2 lacks, in torchtitan and in accelerate.
void refuseForFsdp(const Parallelism &p, const char *trainer, Exported &out) {
  if (p.zeroStage == 1 && p.zeroRanks > 1)
    out.refuse(fmt::format("{} shards gradients along with the optimizer's "
                           "state, ZeRO stage 2 or 3, but the plan has stage "
                           "1; nearest: --zero 2",
                           trainer));
  if (p.recompute == Recompute::selective && p.recomputeLayers != 0)
    out.refuse(fmt::format("{} does not recompute the core of attention "
                           "alone, as the plan does; nearest: --recompute none "
                           "or full",
                           trainer));
  if (p.recompute == Recompute::full && p.recomputeLayers >= 0)
    out.refuse(fmt::format("{} recomputes all layers or none, but the plan {} "
                           "of a virtual stage; nearest: --recompute full, "
                           "without --recompute-layers",
                           trainer, p.recomputeLayers));
  if (p.offload == planner::Offload::optimizer)
    out.refuse(fmt::format("{} offloads parameters along with the optimizer, "
                           "but the plan the optimizer alone; nearest: "
                           "--offload none",
                           trainer));
  if (p.cp > 1 && (p.zeroStage == 0 || p.zeroRanks == 1))
    out.refuse(fmt::format("{} shards the state over the {} context ranks, but "
                           "the plan has ZeRO stage 0; nearest: --cp 1",
                           trainer, p.cp));
  else if (p.cp > 1)
    out.note(fmt::format("{} shards the state over {} replicas times {} "
                         "context ranks, the plan over the replicas",
                         trainer, p.zeroRanks, p.cp));
}

void judge(const TrainerConfig &config, Exported &out) {
  const Parallelism &p = config.parallelism;
  refuseForFsdp(p, "torchtitan", out);
  if (p.tp > 1 && !p.sequenceParallel)
    out.refuse(fmt::format("torchtitan's tensor ranks always split the "
                           "sequence, but the plan's {} do not; nearest: "
                           "--sequence-parallel on, or --tp 1",
                           p.tp));
  if (p.pp > 1 && p.schedule == ScheduleKind::zeroBubble)
    out.refuse("torchtitan runs InterleavedZeroBubble with several virtual "
               "stages on a stage, but zero-bubble has 1; nearest: --schedule "
               "1f1b");
  if (config.precision == Precision::fp16)
    out.refuse("torchtitan trains in bfloat16 or float32, but the plan in "
               "fp16; nearest: --precision bf16");
  if (p.dp > 1 && config.precision == Precision::bf16 &&
      !config.training.fp32Gradients)
    out.note("torchtitan reduces gradients in float32, twice the bytes of the "
             "plan's bfloat16");
}

} // namespace

std::optional<NamedSchedule> scheduleNamed(const std::string &name) {
  const auto *row = std::ranges::find_if(
      kRows, [&](const Row &r) { return sameWord(r.name, name); });
  if (row == kRows.end())
    return std::nullopt;
  return NamedSchedule{row->kind, row->manyChunks, std::string(row->note)};
}

std::string scheduleNames() {
  std::string names;
  for (const Row &row : kRows)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

const char *pytorchName(ScheduleKind kind) {
  const auto *row = std::ranges::find(kRows, kind, &Row::kind);
  return row == kRows.end() ? "1F1B" : row->name.data();
}

std::vector<int> torchtitanParts(std::int64_t layers, int parts) {
  if (parts == 1)
    return {static_cast<int>(layers)};
  std::int64_t counted = layers + 2, each = counted / parts;
  if (each < 1)
    return {};
  std::vector<int> list(static_cast<std::size_t>(parts),
                        static_cast<int>(each));
  for (std::int64_t i = 0; i < counted % parts; ++i)
    ++list[static_cast<std::size_t>(i)];
  --list.front();
  --list.back();
  return list;
}

Exported writeTorchtitan(const TrainerConfig &config) {
  const Parallelism &p = config.parallelism;
  int shard = p.zeroStage == 0 ? 1 : p.zeroRanks;
  std::string text = "[parallelism]\n";
  auto put = [&](const char *key, std::int64_t value) {
    text += fmt::format("{} = {}\n", key, value);
  };
  put("data_parallel_replicate_degree", p.dp / shard);
  put("data_parallel_shard_degree", shard);
  if (shard > 1)
    text += fmt::format("fsdp_reshard_after_forward = \"{}\"\n",
                        p.zeroStage == 3 ? "always" : "never");
  put("tensor_parallel_degree", p.tp);
  put("context_parallel_degree", p.cp);
  put("expert_parallel_degree", p.ep);
  put("pipeline_parallel_degree", p.pp);
  if (p.pp > 1) {
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\n",
                        pytorchName(p.schedule));
    put("pipeline_parallel_microbatch_size", p.microBatch);
    std::int64_t layers =
        std::accumulate(p.layers.begin(), p.layers.end(), std::int64_t{0});
    if (p.layers != torchtitanParts(layers, p.pp) && !p.layers.empty())
      text += modules(p.layers);
  }
  text += "\n[training]\n";
  // With a pipeline, the local batch has all micro-batches of a replica.
  put("local_batch_size", p.pp > 1 ? p.globalBatch / p.dp : p.microBatch);
  put("global_batch_size", p.globalBatch);
  if (config.model.sequence > 0)
    put("seq_len", config.model.sequence);
  bool brain = config.precision == Precision::bf16;
  text += fmt::format("mixed_precision_param = \"{}\"\n",
                      brain ? "bfloat16" : "float32");
  text += "mixed_precision_reduce = \"float32\"\n"; // torchtitan's only value
  text += "\n[activation_checkpoint]\n";
  text += fmt::format("mode = \"{}\"\n", p.recompute == Recompute::none ? "none"
                                         : p.recompute == Recompute::full
                                             ? "full"
                                             : "selective");
  Exported out;
  out.text = std::move(text);
  judge(config, out);
  return out;
}

namespace {

void judgeForAccelerate(const Parallelism &p, int shard, Exported &out) {
  refuseForFsdp(p, "FSDP2", out);
  if (p.pp > 1)
    out.refuse(fmt::format("accelerate has no pipeline for training, but the "
                           "plan has {} stages; nearest: --pp 1",
                           p.pp));
  if (p.ep > 1)
    out.refuse(fmt::format("accelerate has no expert ranks, but the plan has "
                           "{}; nearest: --ep 1",
                           p.ep));
  if (p.sequenceParallel)
    refuseSequenceSplit(p.tp, "accelerate", out);
  if (p.tp > 1 && p.dp > 1 && shard == 1)
    out.refuse(fmt::format("accelerate has no replicas of tensor ranks unless "
                           "they shard the state, but the {} replicas have "
                           "ZeRO stage 0; nearest: --zero 2 or 3, or --dp 1",
                           p.dp));
  out.note(fmt::format("set in the script: {} samples per device at once, {} "
                       "steps of gradient accumulation",
                       p.microBatch, p.microBatches()));
  if (p.tp > 1)
    out.note(fmt::format("set in the script: the {} tensor ranks split the "
                         "model by its tp_plan, which --export hf-tp-plan "
                         "writes",
                         p.tp));
  if (shard == 1 && p.recompute == Recompute::full)
    out.note("set in the script: model.gradient_checkpointing_enable()");
}

} // namespace

Exported writeAccelerate(const TrainerConfig &config) {
  const Parallelism &p = config.parallelism;
  int shard = p.zeroStage == 0 ? 1 : p.zeroRanks;
  auto word = [](bool value) { return value ? "true" : "false"; };
  Exported out;
  std::string &text = out.text;
  text += "compute_environment: LOCAL_MACHINE\n";
  text +=
      fmt::format("distributed_type: {}\n", shard > 1 ? "FSDP" : "MULTI_GPU");
  text += fmt::format("mixed_precision: '{}'\n",
                      config.precision == Precision::bf16   ? "bf16"
                      : config.precision == Precision::fp16 ? "fp16"
                                                            : "no");
  text += fmt::format("num_processes: {}\n", p.dp * p.tp * p.cp);
  if (shard > 1) {
    text += "fsdp_config:\n  fsdp_version: 2\n";
    text += fmt::format("  fsdp_reshard_after_forward: {}\n",
                        word(p.zeroStage == 3));
    text += "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
    text += fmt::format("  fsdp_activation_checkpointing: {}\n",
                        word(p.recompute == Recompute::full));
    text += "  fsdp_offload_params: false\n";
    text += "  fsdp_state_dict_type: SHARDED_STATE_DICT\n";
  }
  if (p.tp > 1 || p.cp > 1 || (shard > 1 && shard < p.dp)) {
    text += "parallelism_config:\n";
    auto degree = [&](const char *name, int size) {
      text += fmt::format("  parallelism_config_{}_size: {}\n", name, size);
    };
    degree("dp_replicate", p.dp / shard);
    degree("dp_shard", shard);
    degree("tp", p.tp);
    degree("cp", p.cp);
  }
  judgeForAccelerate(p, shard, out);
  return out;
}

} // namespace mtplan::tools
