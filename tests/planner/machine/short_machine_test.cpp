//===- short_machine_test.cpp - Machine files of a few lines --------------===//

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/machine/machine_json.h"
#include "planner/machine/preset_files_json.h"

namespace mtplan::planner {
namespace {

using nlohmann::json;

json quantity(json value) {
  return {{"value", std::move(value)}, {"source", "a test"}};
}

// Returns a machine of six H200 on a link of 40 GB/s.
json shortFile() {
  return {{"name", "six"},
          {"devices_per_node", quantity(6)},
          {"device", "H200-SXM-141GB"},
          {"link", {{"bandwidth_GBps", quantity(40)}}}};
}

std::string messageOf(const json &file) {
  try {
    parseMachine(file.dump());
  } catch (const MachineError &error) {
    return error.what();
  }
  return "";
}

TEST(ShortMachine, NamesADeviceAndOneLink) {
  Machine machine = parseMachine(shortFile().dump());
  EXPECT_EQ(machine.name, "six");
  EXPECT_EQ(machine.devicesPerNode, 6);
  EXPECT_EQ(machine.defaultPrecision, Precision::bf16);
  ASSERT_EQ(machine.levels.size(), 1U);
  EXPECT_EQ(machine.levels[0].name, "link");
  EXPECT_EQ(machine.levels[0].bandwidth, BytesPerSec{40e9});
  EXPECT_DOUBLE_EQ(machine.levels[0].latency.value, 2.7e-6);
  EXPECT_DOUBLE_EQ(machine.levels[0].base.value, 19.2e-6);
  // All other figures are those of the preset.
  Machine preset = loadMachine("hgx-h200");
  preset.name = machine.name;
  preset.devicesPerNode = machine.devicesPerNode;
  preset.levels = machine.levels;
  preset.host.reset(); // belongs to the node
  EXPECT_EQ(formatMachine(machine, ""), formatMachine(preset, ""));
}

TEST(ShortMachine, ALinkMayHaveMoreFigures) {
  json file = shortFile();
  file["link"]["name"] = "pcie";
  file["link"]["latency_us"] = quantity(5);
  file["link"]["base_us"] = quantity(0);
  Machine machine = parseMachine(file.dump());
  EXPECT_EQ(machine.levels[0].name, "pcie");
  EXPECT_DOUBLE_EQ(machine.levels[0].latency.value, 5e-6);
  EXPECT_EQ(machine.levels[0].base.value, 0);
}

TEST(ShortMachine, ADeviceMayDeriveFromAnother) {
  json file = shortFile();
  file["device"] = {{"like", "A100-SXM4-80GB"},
                    {"name", "A100 of ours"},
                    {"memory_GB", quantity(64)},
                    {"gemm_efficiency", quantity(0.5)}};
  Machine machine = parseMachine(file.dump());
  Machine preset = loadMachine("dgx-a100-80g");
  EXPECT_EQ(machine.device.name, "A100 of ours");
  EXPECT_EQ(machine.device.memory, Bytes{64e9});
  EXPECT_EQ(machine.device.gemmEfficiency, 0.5);
  EXPECT_EQ(machine.device.units, 108);
  EXPECT_EQ(machine.device.bandwidth, preset.device.bandwidth);
  // A device without a name has the name in `like`.
  file["device"].erase("name");
  EXPECT_EQ(parseMachine(file.dump()).device.name, "A100-SXM4-80GB");
}

// V100 has no bf16, so its default precision is fp16. A file may replace it.
TEST(ShortMachine, ThePrecisionComesWithTheDevice) {
  json file = shortFile();
  file["device"] = "V100-SXM3-32GB";
  EXPECT_EQ(parseMachine(file.dump()).defaultPrecision, Precision::fp16);
  file["default_precision"] = "fp32";
  EXPECT_EQ(parseMachine(file.dump()).defaultPrecision, Precision::fp32);
  file["default_precision"] = "bf16";
  EXPECT_EQ(messageOf(file), "/default_precision: is bf16, but /device has no "
                             "peak_bf16_TFLOPs");
}

TEST(ShortMachine, UnknownDevicesNameTheNearestAndAll) {
  json file = shortFile();
  file["device"] = "H200-SXM-140GB";
  std::string message = messageOf(file);
  EXPECT_EQ(message.find("/device: no preset has a device \"H200-SXM-140GB\"; "
                         "the nearest is \"H200-SXM-141GB\"; known devices: "
                         "cpu core, V100-SXM2-32GB, "),
            0U)
      << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  file["device"] = "A100"; // edit distance alone prefers "cpu core"
  EXPECT_NE(messageOf(file).find("; the nearest is \"A100-SXM4-40GB\"; "),
            std::string::npos);
  file["device"] = {{"like", "TPU"}};
  EXPECT_EQ(messageOf(file).find("/device/like: no preset has a device "), 0U);
  file["device"] = {{"like", 3}};
  EXPECT_EQ(messageOf(file),
            "/device/like: must be text, the name of a device");
  file["device"] = 3;
  EXPECT_EQ(messageOf(file).find("/device: must be an object"), 0U);
}

TEST(ShortMachine, MistakesKeepTheirPointer) {
  json file = shortFile();
  file["link"]["bandwidth_GBps"] = 40;
  file["link"]["ranks"] = quantity(2);
  file["levels"] = json::array();
  EXPECT_EQ(messageOf(file),
            "/link/ranks: must be left out: the link reaches every device\n"
            "/link/bandwidth_GBps: needs a source; write {\"value\": ..., "
            "\"source\": \"where it is from\"}\n"
            "/link: is given together with levels; give only one");
  file = shortFile();
  file["device"] = {{"like", "A100-SXM4-80GB"},
                    {"gemm_efficiency", quantity(1.5)}};
  EXPECT_EQ(messageOf(file).find("/device/gemm_efficiency/value: "), 0U);
  file = shortFile();
  file.erase("device");
  EXPECT_NE(messageOf(file).find("/device: is missing"), std::string::npos)
      << messageOf(file);
}

// Presets with the same device name agree on every figure of the device.
TEST(ShortMachine, PresetsWithOneDeviceAgree) {
  std::vector<std::string> names = knownDevices();
  std::size_t presets = 0;
  for (const std::string &name : names) {
    std::string first;
    for (const std::string &preset : presetNames()) {
      Machine machine = loadMachine(preset);
      if (machine.device.name != name)
        continue;
      ++presets;
      machine.levels = loadMachine("cpu").levels;
      machine.name = "";
      machine.devicesPerNode = 1;
      machine.host.reset();
      std::string text = formatMachine(machine, "");
      if (first.empty())
        first = text;
      EXPECT_EQ(text, first) << preset;
    }
  }
  EXPECT_EQ(presets, presetNames().size());
}

} // namespace
} // namespace mtplan::planner
