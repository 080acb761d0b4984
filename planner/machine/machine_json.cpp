//===- machine_json.cpp - Machine files, both directions ------------------===//

#include "planner/machine/machine_json.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "planner/machine/preset_files_json.h"

namespace mtplan::planner {

using json = base::Json;

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kGB = 1e9;
constexpr double kMicro = 1e-6;
constexpr double kTera = 1e12;

// These ranges hold plausible figures. A number outside its range is probably
// in the wrong unit.
constexpr base::NumberRange kMemory{0, 1e6, true};    // GB or GiB
constexpr base::NumberRange kReserve{0, 1e6, false};  // GiB
constexpr base::NumberRange kBandwidth{0, 1e6, true}; // GB/s
constexpr base::NumberRange kPassRate{0, 1e6, true};  // GB/s
constexpr base::NumberRange kDelay{0, 1e6, false};    // us
constexpr base::NumberRange kShare{0, 1, true};       // share of a peak
constexpr base::NumberRange kRate{0, 1e6, true};      // TFLOP/s
constexpr base::NumberRange kRingCount{0, 1e3, true};
constexpr base::NumberRange kSpread{0, 0.5, false};
constexpr std::int64_t kMostUnits = 1'000'000;
constexpr base::NumberRange kTileSide{1, 65'536, false};
constexpr std::int64_t kMostDevices = 1'000'000;
constexpr std::size_t kMostLevels = 8;
constexpr Precision kMeasured[] = {Precision::fp32, Precision::fp16,
                                   Precision::bf16};

constexpr const char *kAttention = "attention",
                     *kDroppingAttention = "attention.dropout";

// If a file gives no latencies for its link, the link has the latencies of the
// presets' networks: 2.7 us per ring step (src/graph/tuning.cc in
// NVIDIA/nccl@01afd20) and 19.2 us per all-gather or reduce-scatter (fitted to
// A100 nodes).
constexpr double kLinkLatency = 2.7, kLinkBase = 19.2; // us

class MachineReader {
public:
  Machine read(json file) {
    // completeDevice() reports an unknown device and removes it.
    bool hadDevice = file.is_object() && file.contains("device");
    completeDevice(file, errors);
    Machine machine;
    SourcedFields sourced(file, "", errors);
    base::JsonFields &fields = sourced.plain;
    machine.name = fields.text("name");
    machine.devicesPerNode =
        static_cast<int>(sourced.count("devices_per_node", kMostDevices));
    const json *device =
        hadDevice ? fields.find("device") : fields.need("device");
    if (device)
      machine.device = readDevice(*device, fields.pointerTo("device"));
    if (const json *host = fields.find("host"))
      machine.host = readHost(*host, fields.pointerTo("host"));
    if (device || !hadDevice || fields.find("default_precision"))
      machine.defaultPrecision = static_cast<Precision>(
          fields.oneOf("default_precision", kPrecisions));
    readLevels(fields, machine);
    if (errors.empty() && !machine.device.peak(machine.defaultPrecision))
      fields.fail("default_precision",
                  std::string("is ") + nameOf(machine.defaultPrecision) +
                      ", but /device has no peak_" +
                      nameOf(machine.defaultPrecision) + "_TFLOPs");
    fields.rejectOthers();
    return machine;
  }

  base::JsonErrors errors;

private:
  void readLevels(base::JsonFields &fields, Machine &machine) {
    if (const json *link = fields.find("link")) {
      machine.levels = {readLevel(*link, fields.pointerTo("link"), true, true)};
      if (fields.find("levels"))
        fields.fail("link", "is given together with levels; give only one");
      return;
    }
    auto levels = fields.elements("levels", true);
    if (fields.find("levels") &&
        (levels.empty() || levels.size() > kMostLevels))
      fields.fail("levels", "must list 1 to " + std::to_string(kMostLevels) +
                                " levels, got " +
                                std::to_string(levels.size()));
    for (std::size_t i = 0; i < std::min(levels.size(), kMostLevels); ++i)
      machine.levels.push_back(readLevel(*levels[i].first, levels[i].second,
                                         i + 1 == levels.size(), false));
    for (std::size_t i = 1; i + 1 < machine.levels.size(); ++i) {
      int inner = machine.levels[i - 1].ranks, ranks = machine.levels[i].ranks;
      if (ranks <= inner || ranks % inner != 0)
        errors.push_back(levels[i].second + "/ranks: must be a multiple of " +
                         std::to_string(inner) +
                         ", the ranks of the level inside it, got " +
                         std::to_string(ranks));
    }
  }

  Device readDevice(const json &object, const std::string &pointer) {
    Device device;
    SourcedFields sourced(object, pointer, errors);
    base::JsonFields &fields = sourced.plain;
    device.name = fields.text("name");
    device.architecture = fields.text("architecture", "");
    // Vendors use both gigabytes and gibibytes.
    if (fields.find("memory_GB"))
      device.memory = Bytes{kGB * sourced.number("memory_GB", kMemory)};
    else
      device.memory = Bytes{kGiB * sourced.number("memory_GiB", kMemory)};
    if (fields.find("memory_GB") && fields.find("memory_GiB"))
      fields.fail("memory_GiB",
                  "is given together with memory_GB; give only one");
    device.reserved = Bytes{kGiB * sourced.number("reserved_GiB", kReserve)};
    if (device.memory.value > 0 && device.reserved >= device.memory)
      fields.fail("reserved_GiB", "leaves nothing of the device's memory");
    device.reservedContext = {
        kGiB * sourced.number("reserved_context_GiB", kReserve, 0.0)};
    device.reservedBuffers = {
        kGiB * sourced.number("reserved_buffers_GiB", kReserve, 0.0)};
    if ((device.reservedContext + device.reservedBuffers).value >
        device.reserved.value * (1 + 1e-12))
      fields.fail("reserved_GiB", "is less than reserved_context_GiB and "
                                  "reserved_buffers_GiB, which are part of it");
    device.bandwidth =
        BytesPerSec{kGB * sourced.number("bandwidth_GBps", kBandwidth)};
    device.bandwidthEfficiency = sourced.number("bandwidth_efficiency", kShare);
    device.elementwiseEfficiency =
        sourced.number("elementwise_efficiency", kShare, 1.0);
    device.units = static_cast<int>(sourced.count("units", kMostUnits));
    readProducts(sourced, device);
    device.launch = Seconds{kMicro * sourced.number("launch_us", kDelay)};
    device.attentionEfficiency = sourced.number("attention_efficiency", kShare);
    device.spread = sourced.number("speed_spread", kSpread, 0.0);
    auto peak = [&](const std::string &key) -> std::optional<FlopsPerSec> {
      std::optional<double> rate = sourced.optional(key, kRate);
      return rate ? std::optional(FlopsPerSec{kTera * *rate}) : std::nullopt;
    };
    if (const json *kernels = fields.find("kernels"))
      device.kernels = readKernels(*kernels, fields.pointerTo("kernels"));
    device.fp32 = peak("peak_fp32_TFLOPs");
    device.fp16 = peak("peak_fp16_TFLOPs");
    device.bf16 = peak("peak_bf16_TFLOPs");
    device.fp8 = peak("peak_fp8_TFLOPs");
    if (device.fp8 && !fields.find("gemm_efficiency_fp8"))
      fields.fail("gemm_efficiency_fp8",
                  "is missing, but peak_fp8_TFLOPs is given");
    if (!device.fp8 && fields.find("gemm_efficiency_fp8"))
      fields.fail("gemm_efficiency_fp8",
                  "needs peak_fp8_TFLOPs, which is missing");
    fields.rejectOthers();
    return device;
  }

  static void readProducts(SourcedFields &sourced, Device &device) {
    sourced.plain.need("tiles");
    std::vector<Tile> tiles;
    for (const std::vector<double> &row :
         sourced.rows("tiles", {kTileSide, kTileSide, kShare})) {
      if (row[0] != std::floor(row[0]) || row[1] != std::floor(row[1]))
        sourced.plain.fail("tiles", "must be of whole numbers of elements");
      tiles.push_back(
          {static_cast<int>(row[0]), static_cast<int>(row[1]), row[2]});
    }
    if (!tiles.empty())
      device.tiles = std::move(tiles);
    device.wave = Seconds{kMicro * sourced.number("wave_us", kDelay, 0.0)};
    device.products.unaligned64 =
        sourced.number("unaligned_64_rate", kShare, 1.0);
    device.products.unaligned8 =
        sourced.number("unaligned_8_rate", kShare, 1.0);
    device.products.batched = sourced.number("batched_rate", kShare, 1.0);
    device.gemmEfficiency = sourced.number("gemm_efficiency", kShare);
    for (Precision precision : kMeasured)
      device.ownGemmEfficiency[storedAs(precision)] =
          sourced
              .optional(std::string("gemm_efficiency_") + nameOf(precision),
                        kShare)
              .value_or(0.0);
    device.gemmEfficiencyFp8 =
        sourced.number("gemm_efficiency_fp8", kShare, 1.0);
  }

  // Reads shares per precision. A forward share without a backward share, or
  // the reverse, is an error.
  void readAttention(base::JsonFields &fields, const char *key,
                     std::array<MeasuredKernels::Attention, 3> &shares) {
    const json *attention = fields.find(key);
    if (!attention)
      return;
    SourcedFields sourced(*attention, fields.pointerTo(key), errors);
    for (Precision precision : kMeasured) {
      const std::string name = nameOf(precision);
      const std::string keys[] = {name + "_forward", name + "_backward"};
      auto forward = sourced.optional(keys[0], kShare);
      auto backward = sourced.optional(keys[1], kShare);
      if (forward.has_value() != backward.has_value())
        sourced.plain.fail(keys[forward ? 1 : 0], "is missing, but " +
                                                      keys[forward ? 0 : 1] +
                                                      " is given");
      shares[storedAs(precision)] = {forward.value_or(0.0),
                                     backward.value_or(0.0)};
    }
    sourced.plain.rejectOthers();
  }

  void readFusions(const json &object, const std::string &pointer,
                   MeasuredKernels &kernels) {
    base::JsonFields fields(object, pointer, errors);
    for (Precision precision : kMeasured) {
      std::vector<std::string> &names = kernels.fusions[storedAs(precision)];
      for (const auto &[value, where] :
           fields.elements(nameOf(precision), false))
        if (value->is_string())
          names.push_back(value->get<std::string>());
        else
          errors.push_back(where + ": must be the name of a kernel");
      std::ranges::sort(names);
    }
    fields.rejectOthers();
  }

  MeasuredKernels readKernels(const json &object, const std::string &pointer) {
    MeasuredKernels kernels;
    base::JsonFields fields(object, pointer, errors);
    kernels.software = fields.text("software");
    readAttention(fields, kAttention, kernels.attention);
    readAttention(fields, kDroppingAttention, kernels.droppingAttention);
    if (const json *fusions = fields.find("joins"))
      readFusions(*fusions, fields.pointerTo("joins"), kernels);
    if (const json *passes = fields.find("passes")) {
      const std::string at = fields.pointerTo("passes");
      if (!passes->is_object())
        fields.fail("passes", "must be an object");
      else
        for (const auto &[name, rates] : passes->items()) {
          SourcedFields sourced(rates, base::childPointer(at, name), errors);
          for (Precision precision : kMeasured)
            kernels.passes[name][storedAs(precision)] = BytesPerSec{
                kGB * sourced
                          .optional(std::string(nameOf(precision)) + "_GBps",
                                    kPassRate)
                          .value_or(0.0)};
          sourced.plain.rejectOthers();
        }
    }
    fields.rejectOthers();
    return kernels;
  }

  Host readHost(const json &object, const std::string &pointer) {
    Host host;
    SourcedFields sourced(object, pointer, errors);
    host.memory = Bytes{kGiB * sourced.number("memory_GiB", kMemory)};
    host.bandwidth =
        BytesPerSec{kGB * sourced.number("bandwidth_GBps", kBandwidth)};
    host.updateEfficiency = sourced.number("update_efficiency", kShare);
    host.link = BytesPerSec{kGB * sourced.number("link_GBps", kBandwidth)};
    host.linkLatency = {kMicro * sourced.number("link_latency_us", kDelay)};
    sourced.plain.rejectOthers();
    return host;
  }

  // Reads a level of the network. A `single` link needs only a rate, because
  // its other figures have defaults.
  NetworkLevel readLevel(const json &object, const std::string &pointer,
                         bool last, bool single) {
    NetworkLevel level;
    SourcedFields sourced(object, pointer, errors);
    base::JsonFields &fields = sourced.plain;
    level.name = single ? fields.text("name", "link") : fields.text("name");
    if (!last)
      level.ranks = static_cast<int>(sourced.count("ranks", kMostDevices));
    else if (fields.find("ranks"))
      fields.fail("ranks", std::string("must be left out: the ") +
                               (single ? "link" : "last level") +
                               " reaches every device");
    level.bandwidth =
        BytesPerSec{kGB * sourced.number("bandwidth_GBps", kBandwidth)};
    if (std::optional<double> rate =
            sourced.optional("point_to_point_GBps", kBandwidth))
      level.pointToPoint = BytesPerSec{kGB * *rate};
    auto delay = [&](const char *key, double assumed) {
      return Seconds{kMicro * (single ? sourced.number(key, kDelay, assumed)
                                      : sourced.number(key, kDelay))};
    };
    level.latency = delay("latency_us", kLinkLatency);
    level.base = delay("base_us", kLinkBase);
    if (std::optional<double> rate =
            sourced.optional("in_switch_reduction_GBps", kBandwidth)) {
      level.inSwitchReduction = true;
      level.reductionBandwidth = BytesPerSec{kGB * *rate};
      level.reductionLatency =
          Seconds{kMicro * sourced.number("in_switch_latency_us", kDelay)};
    } else if (fields.find("in_switch_latency_us")) {
      fields.fail("in_switch_latency_us",
                  "needs in_switch_reduction_GBps, which is missing");
    }
    level.rings = sourced.numbers("rings", kRingCount);
    fields.rejectOthers();
    return level;
  }

  const std::vector<std::string> kPrecisions{"fp32", "fp16", "bf16"};
};

} // namespace

Machine parseMachine(const std::string &text) {
  MachineReader reader;
  Machine machine;
  try {
    machine = reader.read(base::parseJson(text));
  } catch (const base::JsonError &error) {
    throw MachineError(error.what());
  }
  if (!reader.errors.empty())
    throw MachineError(base::joinLines(reader.errors));
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
  if (!device.architecture.empty())
    block["architecture"] = device.architecture;
  block["memory_GiB"] = quantity(device.memory.value / kGiB);
  block["reserved_GiB"] = quantity(device.reserved.value / kGiB);
  if (device.reservedContext.value > 0)
    block["reserved_context_GiB"] =
        quantity(device.reservedContext.value / kGiB);
  if (device.reservedBuffers.value > 0)
    block["reserved_buffers_GiB"] =
        quantity(device.reservedBuffers.value / kGiB);
  block["bandwidth_GBps"] = quantity(device.bandwidth.value / kGB);
  block["bandwidth_efficiency"] = quantity(device.bandwidthEfficiency);
  block["elementwise_efficiency"] = quantity(device.elementwiseEfficiency);
  block["units"] = quantity(device.units);
  ordered tiles = ordered::array();
  for (const Tile &tile : device.tiles)
    tiles.push_back({tile.m, tile.n, tile.rate});
  block["tiles"] = quantity(std::move(tiles));
  block["wave_us"] = quantity(device.wave.value / kMicro);
  block["unaligned_64_rate"] = quantity(device.products.unaligned64);
  block["unaligned_8_rate"] = quantity(device.products.unaligned8);
  block["batched_rate"] = quantity(device.products.batched);
  block["launch_us"] = quantity(device.launch.value / kMicro);
  block["gemm_efficiency"] = quantity(device.gemmEfficiency);
  for (Precision precision : kMeasured)
    if (double own = device.ownGemmEfficiency[storedAs(precision)]; own > 0)
      block[std::string("gemm_efficiency_") + nameOf(precision)] =
          quantity(own);
  if (device.fp8)
    block["gemm_efficiency_fp8"] = quantity(device.gemmEfficiencyFp8);
  block["attention_efficiency"] = quantity(device.attentionEfficiency);
  if (!device.kernels.software.empty()) {
    ordered &kernels = block["kernels"];
    kernels["software"] = device.kernels.software;
    auto addShares = [&](const char *key, const auto &shares) {
      for (Precision precision : kMeasured)
        if (auto own = shares[storedAs(precision)]; own.forward > 0) {
          const std::string name = nameOf(precision);
          kernels[key][name + "_forward"] = quantity(own.forward);
          kernels[key][name + "_backward"] = quantity(own.backward);
        }
    };
    addShares(kAttention, device.kernels.attention);
    addShares(kDroppingAttention, device.kernels.droppingAttention);
    for (Precision precision : kMeasured)
      if (const auto &names = device.kernels.fusions[storedAs(precision)];
          !names.empty())
        kernels["joins"][nameOf(precision)] = names;
    for (const auto &[name, rates] : device.kernels.passes)
      for (Precision precision : kMeasured)
        if (BytesPerSec rate = rates[storedAs(precision)]; rate.value > 0)
          kernels["passes"][name][std::string(nameOf(precision)) + "_GBps"] =
              quantity(rate.value / kGB);
  }
  block["speed_spread"] = quantity(device.spread);
  for (Precision precision : kMeasured)
    if (std::optional<FlopsPerSec> peak = device.peak(precision))
      block[std::string("peak_") + nameOf(precision) + "_TFLOPs"] =
          quantity(peak->value / kTera);
  if (device.fp8)
    block["peak_fp8_TFLOPs"] = quantity(device.fp8->value / kTera);

  ordered levels = ordered::array();
  for (const NetworkLevel &level : machine.levels) {
    ordered entry;
    entry["name"] = level.name;
    if (&level != &machine.levels.back())
      entry["ranks"] = quantity(level.ranks);
    entry["bandwidth_GBps"] = quantity(level.bandwidth.value / kGB);
    if (level.pointToPoint.value > 0)
      entry["point_to_point_GBps"] = quantity(level.pointToPoint.value / kGB);
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
  if (machine.host) {
    ordered &host = file["host"];
    host["memory_GiB"] = quantity(machine.host->memory.value / kGiB);
    host["bandwidth_GBps"] = quantity(machine.host->bandwidth.value / kGB);
    host["update_efficiency"] = quantity(machine.host->updateEfficiency);
    host["link_GBps"] = quantity(machine.host->link.value / kGB);
    host["link_latency_us"] =
        quantity(machine.host->linkLatency.value / kMicro);
  }
  file["levels"] = std::move(levels);
  return file.dump(2) + '\n';
}

std::vector<std::string> presetNames() { return namesOf(machinePresets()); }

std::string machineText(const std::string &nameOrPath) {
  std::optional<std::string> text = textOf(machinePresets(), nameOrPath);
  if (!text)
    throw MachineError(notFound("machine", machinePresets(), nameOrPath));
  return *text;
}

Machine loadMachine(const std::string &nameOrPath) {
  return parseMachine(machineText(nameOrPath));
}

} // namespace mtplan::planner
