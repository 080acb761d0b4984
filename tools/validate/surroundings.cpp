//===- surroundings.cpp - Machine and software of a published run ---------===//

#include "tools/validate/surroundings.h"

#include <algorithm>
#include <cctype>

#include "ir/model/fields.h"
#include "planner/machine/machine_json.h"

namespace mtplan::tools {

namespace {

std::string lower(std::string text) {
  for (char &c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Words that must all occur, in lower case, and the preset they select.
struct Rule {
  std::vector<const char *> words;
  const char *preset;
};

const char *firstOf(const std::vector<Rule> &rules, const std::string &text) {
  for (const Rule &rule : rules)
    if (std::ranges::all_of(rule.words, [&](const char *word) {
          return text.find(word) != std::string::npos;
        }))
      return rule.preset;
  return nullptr;
}

// Clusters with a network file of their own, by owner.
const std::vector<Rule> kClusters = {
    {{"bloom", "production"}, "jean-zay-a100"},
    {{"bloom", "run 02-25"}, "jean-zay-a100"},
    {{"bloom"}, "jean-zay-a100-2022-01"},
    {{"vtrain"}, "vtrain-a100"},
    {{"pythia"}, "p4d"},
};

// The first matching rule decides. A preset for a vendor's own server is also
// found by its name.
const std::vector<Rule> kDevices = {
    {{"gb200"}, "gb200-nvl72"},
    {{"b200"}, "p6-b200"},
    {{"h200"}, "hgx-h200"},
    {{"h100", "500w"}, "grand-teton-h100-500w"},
    {{"h100", "grand teton"}, "grand-teton-h100-500w"},
    {{"h100", "pcie"}, ""},
    {{"h100", "nvl"}, ""},
    {{"h100", "p5"}, "p5"},
    {{"h100"}, "dgx-h100"},
    {{"a100", "pcie"}, "pcie-a100-80g"},
    {{"a100", "p4de"}, "p4de"},
    {{"a100", "p4d"}, "p4d"},
    {{"a100", "40gb"}, "dgx-a100-40g"},
    // Only this part existed before the one with 80 GB.
    {{"a100", "memory size not stated"}, "dgx-a100-40g"},
    {{"a100"}, "dgx-a100-80g"},
    {{"v100", "dgx-2"}, "dgx-2h"},
    {{"v100", "sxm3"}, "dgx-2h"},
    {{"v100", "16gb"}, "dgx-1v"},
    {{"v100", "pcie"}, ""},
    {{"v100"}, "dgx-1"},
};

// Share of the port rate that a network reaches, as in the machine files.
constexpr double kPortShare = 0.93;

void applyNetwork(const RunRow &row, bool ownNetwork,
                  planner::Machine &machine) {
  planner::NetworkLevel &inner = machine.levels.front();
  auto perNode =
      static_cast<int>(row.gpusPerNode.value_or(machine.devicesPerNode));
  if (machine.levels.size() > 1 && inner.ranks == machine.devicesPerNode &&
      perNode != inner.ranks)
    inner.ranks = machine.devicesPerNode = perNode;
  if (row.interNodeGBps && !ownNetwork && machine.levels.size() > 1)
    machine.levels.back().bandwidth = planner::BytesPerSec{
        *row.interNodeGBps * 1e9 / machine.devicesPerNode * kPortShare};
}

// Returns the software that the source names; notes and model decide where rows
// of a source differ.
const char *knownSoftware(const RunRow &row) {
  auto source = [&](const char *words) { return row.sourceHas(words); };
  if (source("SC21") || source("2104.04473"))
    return row.zeroStage == 3 ? "deepspeed-2021" : "megatron-2021";
  if (source("2205.05198"))
    return "megatron-2022";
  if (source("Megatron-LM 2019") || source("1909.08053"))
    return "megatron-2019";
  if (source("Megatron-LM README"))
    return "megatron-2020";
  if (source("llm-foundry"))
    return "mosaic";
  if (source("dgxc") || source("NeMo"))
    return "nemo-24";
  if (source("vTrain"))
    return "vtrain";
  if (source("BLOOM"))
    return "bloom";
  if (source("torchtitan")) {
    bool compiled = row.notesHave("ompile") || row.notesHave("loat8") ||
                    source("async TP") ||
                    row.model.find("405B") != std::string::npos;
    if (compiled && (row.notesHave("async TP") || row.notesHave("AsyncTP")))
      return "torchtitan-async-tp";
    return compiled ? "torchtitan-compile" : "torchtitan-eager";
  }
  if (source("InternEvo"))
    return "internevo";
  if (source("Alpa"))
    return "alpa";
  if (source("Pythia") || source("gpt-neox"))
    return "gpt-neox";
  if (source("llm.c"))
    return "llm.c";
  if (source("fms"))
    return "fms";
  return nullptr;
}

// Returns the oldest software that has the row's options.
const char *likelySoftware(const RunRow &row, const planner::Machine &machine) {
  if (row.precision == "fp8")
    return row.zeroStage == 3 ? "torchtitan-compile" : "nemo-24";
  bool old = machine.device.architecture == "volta";
  if (!row.flashAttention.value_or(!old))
    return row.sequenceParallel || row.recompute == "selective"
               ? "megatron-2022"
               : "megatron-2021";
  return row.zeroStage == 3 ? "torchtitan-compile" : "nemo-24";
}

} // namespace

std::optional<FoundMachine> machineOf(const RunRow &row, std::string &error) {
  std::vector<std::string> presets = planner::presetNames();
  const char *preset = nullptr;
  bool ownNetwork = false;
  if (std::ranges::find(presets, row.hardware) != presets.end()) {
    preset = row.hardware.c_str();
  } else if ((preset =
                  firstOf(kClusters, lower(row.source + ' ' + row.notes)))) {
    ownNetwork = true;
  } else {
    preset = firstOf(kDevices, lower(row.hardware));
  }
  if (!preset || *preset == '\0') {
    error = ir::unknownName("hardware", row.hardware, presets);
    return std::nullopt;
  }
  FoundMachine found{preset, planner::loadMachine(preset)};
  applyNetwork(row, ownNetwork, found.machine);
  return found;
}

FoundSoftware softwareOf(const RunRow &row, const planner::Machine &machine) {
  FoundSoftware found;
  const char *known = knownSoftware(row);
  found.assumed = !known;
  found.preset = known ? known : likelySoftware(row, machine);
  found.software = planner::loadSoftware(found.preset);
  if (row.notesHave("DDP=local") || row.notesHave("not overlapped"))
    found.software.overlap.reduce = false;
  return found;
}

std::string exclusionOf(const RunRow &row) {
  if (row.notesHave("includes data loading"))
    return "the time includes loading data and checkpoints";
  if (row.notesHave("rowwise"))
    return "a recipe of fp8 that its authors name as a known slow baseline";
  if (!row.microBatch && row.pp > 1)
    return "the micro-batch of a pipeline is not stated";
  if (row.pp > 1 && row.notesHave("Interleaved") && row.chunks <= 1)
    return "how far the schedule interleaves is not stated";
  return {};
}

std::int64_t microBatchOf(const RunRow &row) {
  std::int64_t replicas = row.dp.value_or(
      std::max<std::int64_t>(1, row.gpus / row.tp / row.pp / row.cp));
  return row.microBatch.value_or(
      std::max<std::int64_t>(1, row.globalBatch / replicas));
}

} // namespace mtplan::tools
