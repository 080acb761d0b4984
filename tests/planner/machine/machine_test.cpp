//===- machine_test.cpp - Machine files, good and bad ---------------------===//

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "planner/machine/machine_json.h"

using namespace mtplan::planner;
using json = mtplan::base::Json;

namespace {

json quantity(const json &value) {
  return {{"value", value}, {"source", "made up"}};
}

// Returns a machine file with 8 devices per node and round numbers.
json smallFile() {
  return {{"name", "small"},
          {"default_precision", "bf16"},
          {"devices_per_node", quantity(8)},
          {"device",
           {{"name", "device"},
            {"memory_GiB", quantity(16)},
            {"reserved_GiB", quantity(1)},
            {"bandwidth_GBps", quantity(1000)},
            {"bandwidth_efficiency", quantity(0.5)},
            {"units", quantity(100)},
            {"tiles", quantity({{128, 256, 1}, {64, 128, 0.5}})},
            {"wave_us", quantity(3)},
            {"elementwise_efficiency", quantity(0.875)},
            {"unaligned_64_rate", quantity(0.5)},
            {"unaligned_8_rate", quantity(0.125)},
            {"batched_rate", quantity(0.625)},
            {"speed_spread", quantity(0.01)},
            {"architecture", "new"},
            {"launch_us", quantity(4)},
            {"gemm_efficiency", quantity(0.75)},
            {"gemm_efficiency_fp8", quantity(0.375)},
            {"peak_fp8_TFLOPs", quantity(400)},
            {"attention_efficiency", quantity(0.25)},
            {"peak_fp32_TFLOPs", quantity(20)},
            {"peak_bf16_TFLOPs", quantity(200)}}},
          {"levels",
           {{{"name", "inner"},
             {"ranks", quantity(8)},
             {"bandwidth_GBps", quantity(300)},
             {"latency_us", quantity(2)},
             {"base_us", quantity(10)},
             {"in_switch_reduction_GBps", quantity(250)},
             {"in_switch_latency_us", quantity(7)}},
            {{"name", "outer"},
             {"bandwidth_GBps", quantity(25)},
             {"latency_us", quantity(5)},
             {"base_us", quantity(0)},
             {"rings", quantity({1, 2})}}}}};
}

std::string messageOf(const std::string &text) {
  try {
    parseMachine(text);
  } catch (const MachineError &error) {
    return error.what();
  }
  return "";
}

// Returns the message for the small file with the value at `pointer` replaced.
std::string messageWith(const char *pointer, const json &value) {
  json file = smallFile();
  file[json::json_pointer(pointer)] = value;
  return messageOf(file.dump());
}

std::string messageWithout(const std::string &object, const char *key) {
  json file = smallFile();
  file[json::json_pointer(object)].erase(key);
  return messageOf(file.dump());
}

TEST(ParseMachine, ReadsEveryNumberInItsUnit) {
  Machine machine = parseMachine(smallFile().dump());
  EXPECT_EQ(machine.name, "small");
  EXPECT_EQ(machine.devicesPerNode, 8);
  EXPECT_EQ(machine.defaultPrecision, Precision::bf16);
  const Device &device = machine.device;
  EXPECT_EQ(device.memory, Bytes{17179869184.0});
  EXPECT_EQ(device.reserved, Bytes{1073741824.0});
  EXPECT_EQ(device.bandwidth, BytesPerSec{1e12});
  EXPECT_EQ(device.bandwidthEfficiency, 0.5);
  EXPECT_EQ(device.units, 100);
  ASSERT_EQ(device.tiles.size(), 2u);
  EXPECT_EQ(device.tiles[0].m, 128);
  EXPECT_EQ(device.tiles[0].n, 256);
  EXPECT_EQ(device.tiles[0].rate, 1.0);
  EXPECT_EQ(device.tiles[1].m, 64);
  EXPECT_EQ(device.tiles[1].n, 128);
  EXPECT_EQ(device.tiles[1].rate, 0.5);
  EXPECT_DOUBLE_EQ(device.wave.value, 3e-6);
  EXPECT_EQ(device.elementwiseEfficiency, 0.875);
  EXPECT_EQ(device.products.unaligned64, 0.5);
  EXPECT_EQ(device.products.unaligned8, 0.125);
  EXPECT_EQ(device.products.batched, 0.625);
  EXPECT_EQ(device.spread, 0.01);
  EXPECT_EQ(device.architecture, "new");
  EXPECT_EQ(device.gemmEfficiencyFp8, 0.375);
  EXPECT_EQ(device.fp8, FlopsPerSec{4e14});
  // The stream rate is half of 1000 GB/s, and the pass rate 7/8 of the stream
  // rate.
  EXPECT_EQ(device.streamRate(), BytesPerSec{5e11});
  EXPECT_EQ(device.passRate(), BytesPerSec{4.375e11});
  EXPECT_DOUBLE_EQ(device.launch.value, 4e-6);
  EXPECT_EQ(device.gemmEfficiency, 0.75);
  EXPECT_EQ(device.attentionEfficiency, 0.25);
  EXPECT_EQ(device.peak(Precision::fp32), FlopsPerSec{2e13});
  EXPECT_EQ(device.peak(Precision::bf16), FlopsPerSec{2e14});
  EXPECT_FALSE(device.peak(Precision::fp16).has_value());
  ASSERT_EQ(machine.levels.size(), 2u);
  EXPECT_EQ(machine.levels[0].ranks, 8);
  EXPECT_EQ(machine.levels[0].bandwidth, BytesPerSec{3e11});
  EXPECT_DOUBLE_EQ(machine.levels[0].latency.value, 2e-6);
  EXPECT_DOUBLE_EQ(machine.levels[0].base.value, 1e-5);
  EXPECT_TRUE(machine.levels[0].inSwitchReduction);
  EXPECT_EQ(machine.levels[0].reductionBandwidth, BytesPerSec{2.5e11});
  EXPECT_DOUBLE_EQ(machine.levels[0].reductionLatency.value, 7e-6);
  EXPECT_EQ(machine.levels[1].ranks, 0);
  EXPECT_FALSE(machine.levels[1].inSwitchReduction);
  EXPECT_EQ(machine.levels[1].rings, (std::vector<double>{1, 2}));
}

// A machine file has all figures of a host or none. The devices of a node share
// its host's memory evenly.
TEST(ParseMachine, AHostIsAllOrNothing) {
  EXPECT_FALSE(parseMachine(smallFile().dump()).host);
  EXPECT_EQ(hostShareOf(parseMachine(smallFile().dump()), 8), Bytes{});
  json file = smallFile();
  file["host"] = {{"memory_GiB", quantity(16)},
                  {"bandwidth_GBps", quantity(200)},
                  {"update_efficiency", quantity(0.5)},
                  {"link_GBps", quantity(25)},
                  {"link_latency_us", quantity(10)}};
  Machine machine = parseMachine(file.dump());
  ASSERT_TRUE(machine.host);
  EXPECT_EQ(machine.host->memory, Bytes{17179869184.0});
  EXPECT_EQ(machine.host->bandwidth, BytesPerSec{2e11});
  EXPECT_EQ(machine.host->updateEfficiency, 0.5);
  EXPECT_EQ(machine.host->link, BytesPerSec{25e9});
  EXPECT_DOUBLE_EQ(machine.host->linkLatency.value, 1e-5);
  EXPECT_EQ(hostShareOf(machine, 1), Bytes{17179869184.0});
  EXPECT_EQ(hostShareOf(machine, 4), Bytes{4294967296.0});
  EXPECT_EQ(hostShareOf(machine, 64), Bytes{2147483648.0});
  for (const char *key : {"memory_GiB", "bandwidth_GBps", "update_efficiency",
                          "link_GBps", "link_latency_us"}) {
    json without = file;
    without["host"].erase(key);
    EXPECT_EQ(messageOf(without.dump()),
              std::string("/host/") + key + ": is missing");
  }
  file["host"]["update_efficiency"] = quantity(1.5);
  EXPECT_EQ(messageOf(file.dump()),
            "/host/update_efficiency/value: must be above 0 and at most 1, got "
            "1.5");
}

TEST(ParseMachine, GigabytesOfBothKinds) {
  json file = smallFile();
  file["device"].erase("memory_GiB");
  file["device"]["memory_GB"] = quantity(16);
  EXPECT_EQ(parseMachine(file.dump()).device.memory, Bytes{16e9});
  file["device"]["memory_GiB"] = quantity(16);
  EXPECT_EQ(
      messageOf(file.dump()),
      "/device/memory_GiB: is given together with memory_GB; give only one");
}

TEST(ParseMachine, ANumberWithoutASourceIsRejected) {
  EXPECT_EQ(messageWith("/device/memory_GiB", 16),
            "/device/memory_GiB: needs a source; write {\"value\": ..., "
            "\"source\": \"where it is from\"}");
  EXPECT_EQ(messageWithout("/levels/0/latency_us", "source"),
            "/levels/0/latency_us/source: must say where the number is from");
  EXPECT_EQ(messageWith("/levels/0/latency_us/source", " \n"),
            "/levels/0/latency_us/source: must say where the number is from");
  // Erases the source of every number of the file, one at a time.
  json flat = smallFile().flatten();
  int numbers = 0;
  for (const auto &[pointer, value] : flat.items()) {
    if (!pointer.ends_with("/source"))
      continue;
    ++numbers;
    json file = flat;
    file.erase(pointer);
    EXPECT_EQ(messageOf(file.unflatten().dump()),
              pointer + ": must say where the number is from");
  }
  EXPECT_EQ(numbers, 30);
}

TEST(ParseMachine, ANumberOutOfItsRangeIsRejected) {
  EXPECT_EQ(messageWith("/device/memory_GiB/value", 0),
            "/device/memory_GiB/value: must be above 0 and at most 1e+06, "
            "got 0");
  EXPECT_EQ(messageWith("/device/bandwidth_GBps/value", -1),
            "/device/bandwidth_GBps/value: must be above 0 and at most 1e+06, "
            "got -1");
  EXPECT_EQ(messageWith("/device/gemm_efficiency/value", 1.5),
            "/device/gemm_efficiency/value: must be above 0 and at most 1, "
            "got 1.5");
  EXPECT_EQ(messageWith("/device/peak_bf16_TFLOPs/value", 1e300),
            "/device/peak_bf16_TFLOPs/value: must be above 0 and at most "
            "1e+06, got 1e+300");
  EXPECT_EQ(messageWith("/levels/0/base_us/value", -0.5),
            "/levels/0/base_us/value: must be at least 0 and at most 1e+06, "
            "got -0.5");
  EXPECT_EQ(messageWith("/device/units/value", 1.5),
            "/device/units/value: must be a whole number from 1 to 1000000, "
            "got 1.5");
  EXPECT_EQ(messageWith("/device/units/value", 18446744073709551615u),
            "/device/units/value: must be a whole number from 1 to 1000000, "
            "got 18446744073709551615");
  EXPECT_EQ(messageWith("/device/units/value", "many"),
            "/device/units/value: must be a whole number from 1 to 1000000, "
            "got \"many\"");
  EXPECT_EQ(messageWith("/device/launch_us/value", nullptr),
            "/device/launch_us/value: must be a number, got null");
  EXPECT_EQ(messageWith("/device/reserved_GiB/value", 16),
            "/device/reserved_GiB: leaves nothing of the device's memory");
  EXPECT_EQ(messageWith("/device/reserved_buffers_GiB", quantity(1.5)),
            "/device/reserved_GiB: is less than reserved_context_GiB and "
            "reserved_buffers_GiB, which are part of it");
  EXPECT_EQ(messageWith("/levels/1/rings/value/1", 0),
            "/levels/1/rings/value/1: must be above 0 and at most 1000, got 0");
}

TEST(ParseMachine, TilesAreRowsOfTwoSidesAndARate) {
  EXPECT_EQ(messageWith("/device/tiles/value", json::array()),
            "/device/tiles/value: must be an array, not empty");
  EXPECT_EQ(messageWith("/device/tiles/value/1", {64, 128}),
            "/device/tiles/value/1: must be an array of 3 numbers");
  EXPECT_EQ(messageWith("/device/tiles/value/1/2", 1.5),
            "/device/tiles/value/1/2: must be above 0 and at most 1, got 1.5");
  EXPECT_EQ(messageWith("/device/tiles/value/0/1", 12.5),
            "/device/tiles: must be of whole numbers of elements");
}

TEST(ParseMachine, MissingOptionalMembersAreNeutral) {
  json file = smallFile();
  for (const char *key :
       {"wave_us", "elementwise_efficiency", "unaligned_64_rate",
        "unaligned_8_rate", "batched_rate", "speed_spread", "architecture",
        "gemm_efficiency_fp8", "peak_fp8_TFLOPs"})
    file["device"].erase(key);
  Device device = parseMachine(file.dump()).device;
  EXPECT_EQ(device.wave.value, 0.0);
  EXPECT_EQ(device.passRate(), device.streamRate());
  EXPECT_EQ(device.products.unaligned64, 1.0);
  EXPECT_EQ(device.products.unaligned8, 1.0);
  EXPECT_EQ(device.products.batched, 1.0);
  EXPECT_EQ(device.spread, 0.0);
  EXPECT_FALSE(device.fp8.has_value());
  EXPECT_EQ(messageWithout("/device", "gemm_efficiency_fp8"),
            "/device/gemm_efficiency_fp8: is missing, but peak_fp8_TFLOPs is "
            "given");
  EXPECT_EQ(messageWithout("/device", "peak_fp8_TFLOPs"),
            "/device/gemm_efficiency_fp8: needs peak_fp8_TFLOPs, which "
            "is missing");
}

TEST(SlowestOf, GrowsWithTheRootOfTheLogarithm) {
  Device device;
  EXPECT_EQ(slowestOf(device, 1000), 1.0);
  device.spread = 0.01;
  EXPECT_EQ(slowestOf(device, 1), 1.0);
  // sqrt(2 ln 2981) = sqrt(2 * 8) is 4.
  EXPECT_NEAR(slowestOf(device, 2981), 1.04, 1e-6);
}

TEST(ParseMachine, UnknownKeysNameTheNearestKnownOne) {
  EXPECT_EQ(messageWith("/device/memory_GIB", quantity(1)),
            "/device/memory_GIB: unknown key; the nearest valid key is "
            "\"memory_GiB\"");
  EXPECT_EQ(messageWith("/sources", "x"),
            "/sources: unknown key; the nearest valid key is \"device\"");
  // The key "a/b" is escaped as "a~1b" in a JSON pointer.
  EXPECT_EQ(messageWith("/levels/0/a~1b", 1).substr(0, 28),
            "/levels/0/a~1b: unknown key;");
}

TEST(ParseMachine, MissingKeysAreNamed) {
  EXPECT_EQ(messageWithout("/device", "units"), "/device/units: is missing");
  EXPECT_EQ(messageWithout("/levels/0", "ranks"),
            "/levels/0/ranks: is missing");
  EXPECT_EQ(messageWithout("", "device"), "/device: is missing");
}

TEST(ParseMachine, LevelsNestAndTheLastReachesAll) {
  EXPECT_EQ(messageWith("/levels/1/ranks", quantity(16)),
            "/levels/1/ranks: must be left out: the last level reaches every "
            "device");
  EXPECT_EQ(messageWith("/levels", json::array()),
            "/levels: must list 1 to 8 levels, got 0");
  json file = smallFile();
  file["levels"].insert(file["levels"].begin() + 1, file["levels"][0]);
  file["levels"][1]["ranks"] = quantity(12);
  EXPECT_EQ(messageOf(file.dump()),
            "/levels/1/ranks: must be a multiple of 8, the ranks of the level "
            "inside it, got 12");
}

TEST(ParseMachine, TheDefaultPrecisionMustBeOneTheDeviceHas) {
  EXPECT_EQ(messageWith("/default_precision", "fp16"),
            "/default_precision: is fp16, but /device has no peak_fp16_TFLOPs");
  EXPECT_EQ(messageWith("/default_precision", "fp8"),
            "/default_precision: must be one of \"fp32\", \"fp16\", \"bf16\", "
            "got \"fp8\"; the nearest is \"fp32\"");
}

TEST(ParseMachine, NamesEveryMistake) {
  json file = smallFile();
  file["device"]["units"] = 100;
  file["device"]["tiles"]["value"][0][0] = 0;
  file["levels"][1].erase("base_us");
  file["nmae"] = "x";
  std::string message = messageOf(file.dump());
  EXPECT_EQ(std::ranges::count(message, '\n'), 3) << message;
}

TEST(ParseMachine, InvalidJsonIsReportedWithItsPosition) {
  EXPECT_EQ(messageOf(""),
            "1:1: not JSON: syntax error while parsing value - unexpected "
            "end of input; expected '[', '{', or a literal");
  EXPECT_EQ(messageOf("{\n  \"name\": NaN}").substr(0, 5), "2:11:");
  EXPECT_EQ(messageOf("{\"a\": 1e999}").substr(0, 5), "1:11:");
  EXPECT_EQ(messageOf("[1,\n2").substr(0, 4), "2:2:");
  EXPECT_EQ(messageOf("[]"), ": must be an object, got an array");
}

TEST(FormatMachine, IsReadBackAsTheSameMachine) {
  for (const std::string &name : presetNames()) {
    Machine machine = loadMachine(name);
    std::string text = formatMachine(machine, "a test");
    EXPECT_EQ(formatMachine(parseMachine(text), "a test"), text) << name;
  }
}

TEST(Presets, EqualTheFilesOfExamples) {
  std::vector<std::string> names = presetNames();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (const char *name :
       {"cpu", "dgx-1v", "dgx-2h", "dgx-a100-40g", "dgx-a100-80g", "dgx-h100",
        "gb200-nvl72", "generic", "grand-teton-h100-500w", "hgx-h200", "p4d",
        "pcie-a100-80g", "pcie-a100-80g-pairs"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  std::filesystem::path folder =
      std::filesystem::path(MTPLAN_SOURCE_DIR) / "examples/machines";
  std::size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json")
      continue;
    ++files;
    std::string name = entry.path().stem().string();
    // Loading by path and by name gives the same machine, named after its file.
    Machine fromFile = loadMachine(entry.path().string());
    EXPECT_EQ(fromFile.name, name);
    EXPECT_EQ(formatMachine(fromFile, ""),
              formatMachine(loadMachine(name), ""));
  }
  EXPECT_EQ(files, names.size());
}

// The vendors' figures are the 16-bit peak in TFLOP/s, memory bandwidth in GB/s
// and memory in GB; the GPUs of one fast link domain and of one node; and the
// GB/s of the fast link and of a node's adapters per GPU (0: not published).
// The presets have achieved link rates and usable memory, which are lower.
TEST(Presets, EqualTheDataSheets) {
  struct Sheet {
    const char *name;
    double peak, bandwidth, gigabytes;
    int domain, perNode;
    double inside, adapters;
  };
  for (const Sheet &sheet :
       {Sheet{"dgx-1v", 125, 900, 16, 8, 8, 25, 50.0 / 8},
        Sheet{"dgx-1", 125, 900, 32, 8, 8, 25, 50.0 / 8},
        Sheet{"dgx-2h", 131, 900, 32, 16, 16, 150, 100.0 / 16},
        Sheet{"dgx-a100-40g", 312, 1555, 40, 8, 8, 300, 200.0 / 8},
        Sheet{"dgx-a100-80g", 312, 2039, 80, 8, 8, 300, 200.0 / 8},
        Sheet{"p4d", 312, 1555, 40, 8, 8, 300, 50.0 / 8},
        Sheet{"pcie-a100-80g", 312, 1935, 80, 8, 8, 32, 25.0 / 8},
        Sheet{"dgx-h100", 989, 3350, 80, 8, 8, 450, 400.0 / 8},
        Sheet{"p5", 989, 3350, 80, 8, 8, 450, 400.0 / 8},
        Sheet{"hgx-h200", 989, 4800, 141, 8, 8, 450, 400.0 / 8},
        Sheet{"p6-b200", 2250, 8000, 180, 8, 8, 900, 400.0 / 8},
        Sheet{"hgx-b200", 2250, 8000, 180, 8, 8, 900, 400.0 / 8},
        Sheet{"hgx-b300", 2250, 8000, 288, 8, 8, 900, 800.0 / 8},
        Sheet{"gb200-nvl72", 2500, 8000, 186, 72, 4, 900, 0},
        Sheet{"gb300-nvl72", 2500, 8000, 288, 72, 4, 900, 0}}) {
    SCOPED_TRACE(sheet.name);
    Machine machine = loadMachine(sheet.name);
    const Device &device = machine.device;
    EXPECT_NEAR(device.peak(machine.defaultPrecision)->value / 1e12, sheet.peak,
                0.03 * sheet.peak);
    EXPECT_EQ(device.bandwidth.value / 1e9, sheet.bandwidth);
    double gib = device.memory.value / 1024 / 1024 / 1024;
    EXPECT_LE(gib, sheet.gigabytes);
    EXPECT_GE(gib, 0.9 * sheet.gigabytes);
    ASSERT_EQ(machine.levels.size(), 2U);
    EXPECT_EQ(machine.levels[0].ranks, sheet.domain);
    EXPECT_EQ(machine.devicesPerNode, sheet.perNode);
    EXPECT_LE(machine.levels[0].bandwidth.value / 1e9, sheet.inside);
    EXPECT_GE(machine.levels[0].bandwidth.value / 1e9, 0.5 * sheet.inside);
    if (sheet.adapters > 0) {
      EXPECT_LE(machine.levels[1].bandwidth.value / 1e9, sheet.adapters);
      EXPECT_GE(machine.levels[1].bandwidth.value / 1e9, 0.6 * sheet.adapters);
    }
  }
}

TEST(Presets, HaveThePrecisionsTheirDevicesHave) {
  EXPECT_FALSE(loadMachine("dgx-2h").device.bf16.has_value());
  EXPECT_EQ(loadMachine("dgx-2h").defaultPrecision, Precision::fp16);
  EXPECT_EQ(loadMachine("dgx-2h").devicesPerNode, 16);
  EXPECT_EQ(loadMachine("dgx-h100").defaultPrecision, Precision::bf16);
  EXPECT_EQ(loadMachine("cpu").defaultPrecision, Precision::fp32);
}

TEST(LoadMachine, NamesThePresetsIfNotFound) {
  for (const std::string &path : {std::string("dgx-h1000"), std::string("/")})
    try {
      loadMachine(path);
      FAIL() << path;
    } catch (const MachineError &error) {
      std::string message = error.what();
      EXPECT_EQ(message.find("no machine file \"" + path +
                             "\" can be read, and the presets are: cpu, "),
                0u)
          << message;
    }
}

} // namespace
