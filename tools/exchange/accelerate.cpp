//===- accelerate.cpp - accelerate's YAML for FSDP2 -----------------------===//

#include "tools/exchange/accelerate.h"

#include <fmt/format.h>

namespace mtplan::tools {

using planner::Parallelism;
using planner::Precision;
using planner::Recompute;

namespace {

void addNotes(const Parallelism &p, std::vector<std::string> &notes) {
  notes.push_back(fmt::format("the script is to be told: {} samples a device "
                              "at once, {} steps of gradient accumulation",
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
  addNotes(p, out.notes);
  return out;
}

} // namespace mtplan::tools
