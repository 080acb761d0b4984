//===- machine_json.cpp - Machine files, both directions ------------------===//
//
// Every number is an object {"value": ..., "source": "..."}, so that none can
// be there without saying where it came from. Units are in the keys.
//
//===----------------------------------------------------------------------===//

#include "planner/machine/machine_json.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "planner/json_fields.h"
#include "planner/json_text.h"
#include "planner/machine/machine_presets.h"

namespace mtplan::planner {

using nlohmann::json;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kGB = 1e9;
constexpr double kMicro = 1e-6;
constexpr double kTera = 1e12;

// Limits that no machine of the coming decades is expected to pass; what does
// is a slip of the unit.
constexpr NumberRange kMemory{0, 1e6, true};    // GB or GiB
constexpr NumberRange kReserve{0, 1e6, false};  // GiB
constexpr NumberRange kBandwidth{0, 1e6, true}; // GB/s
constexpr NumberRange kDelay{0, 1e6, false};    // us
constexpr NumberRange kShare{0, 1, true};       // of a peak
constexpr NumberRange kRate{0, 1e6, true};      // TFLOP/s
constexpr NumberRange kRingCount{0, 1e3, true};
constexpr std::int64_t kMostUnits = 1'000'000;
constexpr std::int64_t kMostTile = 65'536;
constexpr std::int64_t kMostDevices = 1'000'000;
constexpr std::size_t kMostLevels = 8;

class MachineReader {
public:
  Machine read(const json &file) {
    Machine machine;
    JsonFields fields(file, "", errors);
    machine.name = fields.text("name");
    machine.devicesPerNode =
        static_cast<int>(count(fields, "devices_per_node", kMostDevices));
    if (const json *device = fields.need("device"))
      machine.device = readDevice(*device, fields.pointerTo("device"));
    machine.defaultPrecision =
        static_cast<Precision>(fields.oneOf("default_precision", kPrecisions));
    auto levels = fields.elements("levels", true);
    if (fields.find("levels") &&
        (levels.empty() || levels.size() > kMostLevels))
      fields.fail("levels", "must list 1 to " + std::to_string(kMostLevels) +
                                " levels, got " +
                                std::to_string(levels.size()));
    for (std::size_t i = 0; i < std::min(levels.size(), kMostLevels); ++i)
      machine.levels.push_back(readLevel(*levels[i].first, levels[i].second,
                                         i + 1 == levels.size()));
    for (std::size_t i = 1; i + 1 < machine.levels.size(); ++i) {
      int inner = machine.levels[i - 1].ranks, ranks = machine.levels[i].ranks;
      if (ranks <= inner || ranks % inner != 0)
        errors.push_back(levels[i].second + "/ranks: must be a multiple of " +
                         std::to_string(inner) +
                         ", the ranks of the level inside it, got " +
                         std::to_string(ranks));
    }
    if (errors.empty() && !machine.device.peak(machine.defaultPrecision))
      fields.fail("default_precision",
                  std::string("is ") + nameOf(machine.defaultPrecision) +
                      ", but /device has no peak_" +
                      nameOf(machine.defaultPrecision) + "_TFLOPs");
    fields.rejectOthers();
    return machine;
  }

  JsonErrors errors;

private:
  // The value inside {"value": ..., "source": "..."}, or null.
  const json *sourced(const json &quantity, const std::string &pointer) {
    if (!quantity.is_object()) {
      errors.push_back(pointer + ": needs a source; write {\"value\": ..., "
                                 "\"source\": \"where it is from\"}");
      return nullptr;
    }
    JsonFields fields(quantity, pointer, errors);
    const json *value = fields.need("value");
    const json *source = fields.find("source");
    if (!source || !source->is_string() ||
        source->get<std::string>().find_first_not_of(" \t\r\n") ==
            std::string::npos)
      fields.fail("source", "must say where the number is from");
    fields.rejectOthers();
    return value;
  }

  std::optional<double> optional(JsonFields &fields, const std::string &key,
                                 const NumberRange &range) {
    const json *member = fields.find(key);
    const json *value =
        member ? sourced(*member, fields.pointerTo(key)) : nullptr;
    if (!value)
      return std::nullopt;
    return readNumber(*value, fields.pointerTo(key) + "/value", range, errors);
  }

  double number(JsonFields &fields, const std::string &key,
                const NumberRange &range) {
    fields.need(key);
    return optional(fields, key, range).value_or(range.least);
  }

  std::int64_t count(JsonFields &fields, const std::string &key,
                     std::int64_t most) {
    const json *member = fields.need(key);
    const json *value =
        member ? sourced(*member, fields.pointerTo(key)) : nullptr;
    if (!value)
      return 1;
    return readInteger(*value, fields.pointerTo(key) + "/value", 1, most,
                       errors)
        .value_or(1);
  }

  Device readDevice(const json &object, const std::string &pointer) {
    Device device;
    JsonFields fields(object, pointer, errors);
    device.name = fields.text("name");
    // Vendors' gigabytes are of both kinds; the key says which.
    if (fields.find("memory_GB"))
      device.memory = Bytes{kGB * number(fields, "memory_GB", kMemory)};
    else
      device.memory = Bytes{kGiB * number(fields, "memory_GiB", kMemory)};
    if (fields.find("memory_GB") && fields.find("memory_GiB"))
      fields.fail("memory_GiB", "is given as well as memory_GB; give one");
    device.reserved = Bytes{kGiB * number(fields, "reserved_GiB", kReserve)};
    if (device.memory.value > 0 && device.reserved >= device.memory)
      fields.fail("reserved_GiB", "leaves nothing of the device's memory");
    device.bandwidth =
        BytesPerSec{kGB * number(fields, "bandwidth_GBps", kBandwidth)};
    device.bandwidthEfficiency = number(fields, "bandwidth_efficiency", kShare);
    device.units = static_cast<int>(count(fields, "units", kMostUnits));
    device.tileM = static_cast<int>(count(fields, "tile_m", kMostTile));
    device.tileN = static_cast<int>(count(fields, "tile_n", kMostTile));
    device.launch = Seconds{kMicro * number(fields, "launch_us", kDelay)};
    device.gemmEfficiency = number(fields, "gemm_efficiency", kShare);
    device.attentionEfficiency = number(fields, "attention_efficiency", kShare);
    auto peak = [&](const std::string &key) -> std::optional<FlopsPerSec> {
      std::optional<double> rate = optional(fields, key, kRate);
      return rate ? std::optional(FlopsPerSec{kTera * *rate}) : std::nullopt;
    };
    device.fp32 = peak("peak_fp32_TFLOPs");
    device.fp16 = peak("peak_fp16_TFLOPs");
    device.bf16 = peak("peak_bf16_TFLOPs");
    fields.rejectOthers();
    return device;
  }

  NetworkLevel readLevel(const json &object, const std::string &pointer,
                         bool last) {
    NetworkLevel level;
    JsonFields fields(object, pointer, errors);
    level.name = fields.text("name");
    if (!last)
      level.ranks = static_cast<int>(count(fields, "ranks", kMostDevices));
    else if (fields.find("ranks"))
      fields.fail("ranks", "must be left out: the last level reaches "
                           "every device");
    level.bandwidth =
        BytesPerSec{kGB * number(fields, "bandwidth_GBps", kBandwidth)};
    level.latency = Seconds{kMicro * number(fields, "latency_us", kDelay)};
    level.base = Seconds{kMicro * number(fields, "base_us", kDelay)};
    if (std::optional<double> rate =
            optional(fields, "in_switch_reduction_GBps", kBandwidth)) {
      level.inSwitchReduction = true;
      level.reductionBandwidth = BytesPerSec{kGB * *rate};
      level.reductionLatency =
          Seconds{kMicro * number(fields, "in_switch_latency_us", kDelay)};
    } else if (fields.find("in_switch_latency_us")) {
      fields.fail("in_switch_latency_us",
                  "means nothing without in_switch_reduction_GBps");
    }
    if (const json *rings = fields.find("rings"))
      level.rings = readRings(*rings, fields.pointerTo("rings"));
    fields.rejectOthers();
    return level;
  }

  std::vector<double> readRings(const json &quantity,
                                const std::string &pointer) {
    std::vector<double> rings;
    const json *list = sourced(quantity, pointer);
    if (!list)
      return rings;
    std::string where = pointer + "/value";
    if (!list->is_array() || list->empty()) {
      errors.push_back(where + ": must be an array of ring counts for groups "
                               "of 2, 3, ... devices");
      return rings;
    }
    for (std::size_t i = 0; i < list->size(); ++i)
      rings.push_back(
          readNumber((*list)[i], childPointer(where, i), kRingCount, errors)
              .value_or(1));
    return rings;
  }

  const std::vector<std::string> kPrecisions{"fp32", "fp16", "bf16"};
};

} // namespace

Machine parseMachine(const std::string &text) {
  MachineReader reader;
  Machine machine;
  try {
    machine = reader.read(parseJsonText(text));
  } catch (const JsonTextError &error) {
    throw MachineError(error.what());
  }
  if (!reader.errors.empty())
    throw MachineError(joinLines(reader.errors));
  return machine;
}

std::string formatMachine(const Machine &machine, const std::string &source) {
  using ordered = nlohmann::ordered_json;
  auto quantity = [&](auto value) {
    return ordered{{"value", value}, {"source", source}};
  };
  const Device &device = machine.device;
  ordered block;
  block["name"] = device.name;
  block["memory_GiB"] = quantity(device.memory.value / kGiB);
  block["reserved_GiB"] = quantity(device.reserved.value / kGiB);
  block["bandwidth_GBps"] = quantity(device.bandwidth.value / kGB);
  block["bandwidth_efficiency"] = quantity(device.bandwidthEfficiency);
  block["units"] = quantity(device.units);
  block["tile_m"] = quantity(device.tileM);
  block["tile_n"] = quantity(device.tileN);
  block["launch_us"] = quantity(device.launch.value / kMicro);
  block["gemm_efficiency"] = quantity(device.gemmEfficiency);
  block["attention_efficiency"] = quantity(device.attentionEfficiency);
  for (Precision precision :
       {Precision::fp32, Precision::fp16, Precision::bf16})
    if (std::optional<FlopsPerSec> peak = device.peak(precision))
      block[std::string("peak_") + nameOf(precision) + "_TFLOPs"] =
          quantity(peak->value / kTera);

  ordered levels = ordered::array();
  for (const NetworkLevel &level : machine.levels) {
    ordered entry;
    entry["name"] = level.name;
    if (&level != &machine.levels.back())
      entry["ranks"] = quantity(level.ranks);
    entry["bandwidth_GBps"] = quantity(level.bandwidth.value / kGB);
    entry["latency_us"] = quantity(level.latency.value / kMicro);
    entry["base_us"] = quantity(level.base.value / kMicro);
    if (level.inSwitchReduction) {
      entry["in_switch_reduction_GBps"] =
          quantity(level.reductionBandwidth.value / kGB);
      entry["in_switch_latency_us"] =
          quantity(level.reductionLatency.value / kMicro);
    }
    if (!level.rings.empty())
      entry["rings"] = quantity(level.rings);
    levels.push_back(std::move(entry));
  }

  ordered file;
  file["name"] = machine.name;
  file["default_precision"] = nameOf(machine.defaultPrecision);
  file["devices_per_node"] = quantity(machine.devicesPerNode);
  file["device"] = std::move(block);
  file["levels"] = std::move(levels);
  return file.dump(2) + '\n';
}

std::vector<std::string> presetNames() {
  std::vector<std::string> names;
  for (const MachinePreset &preset : machinePresets())
    names.emplace_back(preset.name);
  return names;
}

Machine loadMachine(const std::string &nameOrPath) {
  for (const MachinePreset &preset : machinePresets())
    if (nameOrPath == preset.name)
      return parseMachine(preset.text);
  std::error_code ignored;
  std::ifstream file;
  if (std::filesystem::is_regular_file(nameOrPath, ignored))
    file.open(nameOrPath, std::ios::binary);
  if (!file.is_open()) {
    std::string presets;
    for (const std::string &name : presetNames())
      presets += (presets.empty() ? "" : ", ") + name;
    throw MachineError("no machine file \"" + nameOrPath +
                       "\" can be read, and the presets are: " + presets);
  }
  return parseMachine(std::string(std::istreambuf_iterator<char>(file), {}));
}

} // namespace mtplan::planner
