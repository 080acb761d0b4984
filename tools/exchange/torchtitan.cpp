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

void addNotes(const TrainerConfig &config, std::vector<std::string> &notes) {
  const Parallelism &p = config.parallelism;
  if (p.zeroStage == 1)
    notes.emplace_back("torchtitan has no ZeRO stage 1; written as stage 2");
  if (p.tp > 1 && !p.sequenceParallel)
    notes.emplace_back("torchtitan's tensor ranks always split the sequence");
  if (p.recompute != Recompute::none && p.recomputeLayers > 0)
    notes.push_back(
        fmt::format("torchtitan recomputes in all layers, not in {} of a part",
                    p.recomputeLayers));
  if (p.recompute == Recompute::selective)
    notes.emplace_back("torchtitan's selective recomputation keeps other "
                       "operators: every second matrix product and attention");
  if (p.offload == planner::Offload::optimizer)
    notes.emplace_back(
        "torchtitan offloads parameters along with the optimizer");
  if (p.schedule == ScheduleKind::zeroBubble)
    notes.emplace_back("torchtitan's InterleavedZeroBubble has two chunks a "
                       "stage by default");
  if (config.precision == Precision::fp16)
    notes.emplace_back(
        "torchtitan trains in bfloat16 or float32; written as float32");
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
  text += fmt::format("mixed_precision_reduce = \"{}\"\n",
                      brain && !config.training.fp32Gradients ? "bfloat16"
                                                              : "float32");
  if (p.offload == planner::Offload::optimizer)
    text += "enable_cpu_offload = true\n";
  text += "\n[activation_checkpoint]\n";
  text += fmt::format("mode = \"{}\"\n", p.recompute == Recompute::none ? "none"
                                         : p.recompute == Recompute::full
                                             ? "full"
                                             : "selective");
  Exported out;
  out.text = std::move(text);
  addNotes(config, out.notes);
  return out;
}

namespace {

void addAccelerateNotes(const Parallelism &p, std::vector<std::string> &notes) {
  notes.push_back(fmt::format("set in the script: {} samples per device at "
                              "once, {} steps of gradient accumulation",
                              p.microBatch, p.microBatches()));
  if (p.pp > 1)
    notes.push_back(fmt::format("accelerate has no pipeline for training; {} "
                                "stages are left out of the file",
                                p.pp));
  if (p.ep > 1)
    notes.push_back(fmt::format(
        "accelerate has no expert ranks; {} are left out of the file", p.ep));
  if (p.zeroStage == 1)
    notes.emplace_back("FSDP2 has no ZeRO stage 1; written as stage 2");
  if (p.recompute == Recompute::selective)
    notes.emplace_back(
        "FSDP2 recomputes whole layers or nothing; written as nothing");
  if (p.recompute == Recompute::full && p.recomputeLayers > 0)
    notes.push_back(fmt::format("FSDP2 recomputes all layers, not {} of a part",
                                p.recomputeLayers));
  if (p.offload == planner::Offload::optimizer)
    notes.emplace_back("FSDP2 offloads parameters along with the optimizer");
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
    text += fmt::format("  fsdp_offload_params: {}\n",
                        word(p.offload == planner::Offload::optimizer));
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
  addAccelerateNotes(p, out.notes);
  return out;
}

} // namespace mtplan::tools
