//===- run_row.cpp - Published training runs ------------------------------===//

#include "tools/runs/run_row.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "ir/model/fields.h"
#include "planner/machine/machine_json.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {

namespace {

class Cells {
public:
  Cells(const std::map<std::string, std::size_t> &where,
        const std::vector<std::string> &record, int lineNumber,
        std::vector<std::string> &findings)
      : columns(where), cells(record), line(lineNumber), errors(findings) {}

  bool has(const char *column) const { return columns.contains(column); }

  const std::string &text(const char *column) const {
    static const std::string kNothing;
    auto found = columns.find(column);
    return found == columns.end() ? kNothing : cells[found->second];
  }

  std::optional<double> number(const char *column) {
    const std::string &cell = text(column);
    if (cell.empty())
      return std::nullopt;
    double value = 0.0;
    const char *end = cell.data() + cell.size();
    auto [rest, problem] = std::from_chars(cell.data(), end, value);
    if (problem == std::errc{} && rest == end && std::isfinite(value) &&
        value >= 0.0)
      return value;
    error(column, "must be a number of at least 0, but is \"" + cell + '"');
    return std::nullopt;
  }

  std::optional<std::int64_t> count(const char *column) {
    constexpr double kMost = 1e12;
    std::optional<double> value = number(column);
    if (!value)
      return std::nullopt;
    if (*value >= 1 && *value <= kMost && *value == std::floor(*value))
      return static_cast<std::int64_t>(*value);
    error(column,
          "must be a whole number from 1, but is \"" + text(column) + '"');
    return std::nullopt;
  }

  /// Sets RunRow::missing to the first needed column whose cell is empty.
  std::int64_t needed(const char *column, RunRow &row) {
    std::optional<std::int64_t> value = count(column);
    if (text(column).empty() && row.missing.empty())
      row.missing = column;
    return value.value_or(1);
  }

  /// Returns nothing for an empty cell.
  std::optional<bool> flag(const char *column) {
    const std::string &cell = text(column);
    if (!cell.empty() && cell != "yes" && cell != "no")
      error(column, "must be yes or no, but is \"" + cell + '"');
    return cell.empty() ? std::nullopt : std::optional<bool>(cell == "yes");
  }

  void error(const char *column, const std::string &what) {
    errors.push_back("line " + std::to_string(line) + ": " + column + ": " +
                     what);
  }

private:
  const std::map<std::string, std::size_t> &columns;
  const std::vector<std::string> &cells;
  int line;
  std::vector<std::string> &errors;
};

constexpr const char *kStepTime = "step_time_s", *kPeak = "peak_memory_GiB";

RunRow rowOf(Cells &cells) {
  RunRow row;
  row.id = cells.text("id");
  row.source = cells.text("source");
  row.hardware = cells.text("hardware");
  row.model = cells.text("model_name");
  row.recompute = cells.text("recompute");
  row.precision = cells.text("precision");
  row.notes = cells.text("notes");
  row.gpus = cells.needed("gpus", row);
  row.gpusPerNode = cells.count("gpus_per_node");
  row.intraNodeGBps = cells.number("intra_node_bw_GBps");
  row.interNodeGBps = cells.number("inter_node_bw_GBps_per_node");
  row.parametersB = cells.number("params_B");
  row.layers = cells.needed("layers", row);
  row.hidden = cells.needed("hidden", row);
  row.heads = cells.needed("heads", row);
  row.kvHeads = cells.count("kv_heads");
  row.inner = cells.count("ffn_hidden");
  row.vocabulary = cells.needed("vocab", row);
  row.sequence = cells.needed("seq_len", row);
  row.globalBatch = cells.needed("global_batch", row);
  row.microBatch = cells.count("micro_batch");
  row.tp = cells.count("tp").value_or(1);
  row.pp = cells.count("pp").value_or(1);
  row.cp = cells.count("cp").value_or(1);
  row.chunks = cells.count("interleave_chunks").value_or(1);
  row.dp = cells.count("dp");
  row.experts = cells.number("experts").value_or(0);
  double zero = cells.number("zero_stage").value_or(0);
  if (zero > 3 || zero != std::floor(zero))
    cells.error("zero_stage", "must be 0, 1, 2 or 3");
  else
    row.zeroStage = static_cast<int>(zero);
  row.sequenceParallel = cells.flag("sequence_parallel").value_or(false);
  row.flashAttention = cells.flag("flash_attention");
  row.stepSeconds = cells.number(kStepTime).value_or(0.0);
  row.peakGiB = cells.number(kPeak).value_or(0.0);
  row.memoryKind = cells.text("memory_kind");
  constexpr std::string_view kKinds[] = {"", "unknown", "allocated", "reserved",
                                         "nvidia-smi"};
  if (std::ranges::find(kKinds, row.memoryKind) == std::end(kKinds))
    cells.error("memory_kind", "must be allocated, reserved, nvidia-smi or "
                               "unknown, but is \"" +
                                   row.memoryKind + '"');
  if (row.stepSeconds <= 0.0 && row.peakGiB <= 0.0)
    cells.error(cells.has(kStepTime) ? kStepTime : kPeak, "must be above 0");
  return row;
}

constexpr const char *kNeeded[] = {
    "id",     "source", "hardware", "gpus",    "model_name",  "layers",
    "hidden", "heads",  "vocab",    "seq_len", "global_batch"};

std::string lower(std::string text) {
  for (char &c : text)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Selects `preset` for a text that contains all `words`, which are in lower
/// case.
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

// The source and the notes of a run select the machine files of these clusters.
const std::vector<Rule> kClusters = {
    {{"bloom", "production"}, "jean-zay-a100"},
    {{"bloom", "run 02-25"}, "jean-zay-a100"},
    {{"bloom"}, "jean-zay-a100-2022-01"},
    {{"vtrain"}, "vtrain-a100"},
    {{"pythia"}, "p4d"},
};

// The first matching rule decides. An empty preset means that the device has no
// machine file.
const std::vector<Rule> kDevices = {
    {{"gb300"}, "gb300-nvl72"},
    {{"gb200"}, "gb200-nvl72"},
    {{"blackwell", "184 gib"}, "gb200-nvl72"}, // the memory of GB200
    {{"b300"}, "hgx-b300"},
    {{"b200 sxm"}, "hgx-b200"},
    {{"dgx b200"}, "hgx-b200"},
    {{"b200", "power limited"}, "hgx-b200"},
    {{"b200"}, "p6-b200"},
    {{"h200"}, "hgx-h200"},
    {{"h100", "500w"}, "grand-teton-h100-500w"},
    {{"h100", "grand teton"}, "grand-teton-h100-500w"},
    {{"h100", "pcie"}, ""},
    {{"h100", "nvl"}, ""},
    {{"h100", "p5"}, "p5"},
    {{"h100", "efa"}, "p5"}, // AWS's network; its nodes of 8 H100 are p5
    {{"h100"}, "dgx-h100"},
    {{"a100", "pcie"}, "pcie-a100-80g"},
    {{"a100", "p4de"}, "p4de"},
    {{"a100", "p4d"}, "p4d"},
    {{"a100", "40gb"}, "dgx-a100-40g"},
    // The first A100 had 40 GB.
    {{"a100", "memory size not stated"}, "dgx-a100-40g"},
    {{"a100"}, "dgx-a100-80g"},
    {{"v100", "dgx-2"}, "dgx-2h"},
    {{"v100", "sxm3"}, "dgx-2h"},
    {{"v100", "16gb"}, "dgx-1v"},
    {{"v100", "pcie"}, ""},
    {{"v100"}, "dgx-1"},
};

// Networks reach this share of the port rate, as in the machine files.
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

// Returns the software that the source names, or null. If the runs of a source
// use different software, other columns of the row decide.
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
  if (source("Megatron-Bridge"))
    return "megatron-bridge";
  if (source("dgxc") || (source("NeMo") && !source("Automodel")))
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
  if (source("nanotron"))
    return "nanotron";
  if (source("SimuMax"))
    return "megatron-2025";
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

std::vector<RunRow> readRows(const std::string &text,
                             std::vector<std::string> &errors) {
  std::vector<RunRow> rows;
  const std::vector<CsvRecord> records = csvRecords(text);
  std::map<std::string, std::size_t> columns;
  if (!records.empty())
    for (std::size_t i = 0; i < records.front().cells.size(); ++i)
      columns.emplace(records.front().cells[i], i);
  const auto need = [&](const std::string &name) {
    if (!columns.contains(name))
      errors.push_back("line 1: there is no column " + name);
  };
  for (const char *name : kNeeded)
    need(name);
  if (!columns.contains(kPeak))
    need(kStepTime);
  if (!errors.empty())
    return rows;
  const std::size_t width = records.front().cells.size();
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto &[cellTexts, lineNumber] = records[i];
    if (cellTexts.size() == 1 && cellTexts[0].empty())
      continue;
    if (cellTexts.size() != width) {
      errors.push_back("line " + std::to_string(lineNumber) + ": has " +
                       std::to_string(cellTexts.size()) +
                       " cells, the header " + std::to_string(width));
      continue;
    }
    std::size_t before = errors.size();
    Cells cells(columns, cellTexts, lineNumber, errors);
    RunRow row = rowOf(cells);
    if (errors.size() == before)
      rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<FoundMachine> machineOf(const RunRow &row, std::string &error,
                                      const std::string &given) {
  if (!given.empty())
    return FoundMachine{given, planner::loadMachine(given)};
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
  return found;
}

bool reducesAfterBackward(const RunRow &row) {
  return row.notesHave("DDP=local") || row.notesHave("not overlapped");
}

std::string exclusionOf(const RunRow &row, Quantity quantity) {
  const bool isTime = quantity == Quantity::stepTime;
  if (!row.missing.empty())
    return row.missing + " is not stated";
  if (isTime && row.notesHave("includes data loading"))
    return "the time includes loading data and checkpoints";
  if (isTime && row.notesHave("rowwise"))
    return "a recipe of fp8 that its authors name as a known slow baseline";
  if (!isTime && row.recompute.empty())
    return "what is recomputed is not stated";
  if (const std::string &precision = row.precision;
      precision != "bf16" && precision != "fp16" && precision != "fp8")
    return precision.empty() ? "the precision is not stated"
                             : "precision " + precision + " is not modelled";
  if (row.experts > 1)
    return "the model has experts, and rows do not state all their sizes";
  if (!row.microBatch && row.pp > 1)
    return "the micro-batch of a pipeline is not stated";
  if (row.pp > 1 && row.notesHave("Interleaved") && row.chunks <= 1)
    return "how far the schedule interleaves is not stated";
  return {};
}

double measuredOf(const RunRow &row, Quantity quantity) {
  return quantity == Quantity::stepTime ? row.stepSeconds : row.peakGiB;
}

std::int64_t microBatchOf(const RunRow &row) {
  std::int64_t replicas = row.dp.value_or(
      std::max<std::int64_t>(1, row.gpus / row.tp / row.pp / row.cp));
  return row.microBatch.value_or(
      std::max<std::int64_t>(1, row.globalBatch / replicas));
}

} // namespace mtplan::tools
