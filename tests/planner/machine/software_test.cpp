//===- software_test.cpp - Software files, good and bad -------------------===//

#include <algorithm>
#include <array>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"

using namespace mtplan::planner;
using nlohmann::json;

namespace {

json quantity(const json &value) {
  return {{"value", value}, {"source", "made up"}};
}

json pass(int first) {
  return {{"forward_bytes", quantity(first)},
          {"backward_bytes", quantity(first + 1)},
          {"forward_kernels", quantity(first + 2)},
          {"backward_kernels", quantity(first + 3)},
          {"kept_bytes", quantity(first + 4)}};
}

// Returns a file in which all numbers differ, so that a swap is found.
json smallFile() {
  return {{"name", "small"},
          {"attention",
           {{"kernel", "fused"},
            {"head_sizes", quantity({32, 64})},
            {"rates", json::array({{{"device", "new"},
                                    {"forward", quantity(0.5)},
                                    {"backward", quantity(0.25)}}})},
            {"copy_forward_bytes", quantity(1)},
            {"copy_backward_bytes", quantity(2)},
            {"copy_kept_bytes", quantity(20)},
            {"forward_kernels", quantity(3)},
            {"backward_kernels", quantity(4)}}},
          {"passes",
           {{"layer_norm", pass(10)},
            {"rms_norm", pass(20)},
            {"residual", pass(30)},
            {"activation", pass(40)},
            {"gated_activation", pass(50)},
            {"rope", pass(60)},
            {"dropout", pass(70)},
            {"bias_gradient", pass(80)}}},
          {"cross_entropy_bytes", quantity(5)},
          {"parameters",
           {{"gradient_bytes", quantity(6)},
            {"optimizer_bytes", quantity(7)},
            {"sweep_bytes", quantity(8)},
            {"norm_reads", quantity(12)},
            {"accumulation_bytes", quantity(9)},
            {"shard_copy_bytes", quantity(11)},
            {"bucket_MB", quantity(13)},
            {"gathered_fp8_share", quantity(0.875)},
            {"flat_ring_GBps", quantity(14)},
            {"per_sharer_us", quantity(15)}}},
          {"joins_products", quantity(true)},
          {"joins",
           {{"devices", quantity({"new", "newer"})},
            {"fp32", quantity({"add"})},
            {"fp16", quantity({"mul"})},
            {"bf16", quantity({"add", "dropout+add"})},
            {"messages", quantity(true)}}},
          {"fp8_casts",
           {{"input_bytes", quantity(16)},
            {"normalised_input_bytes", quantity(17)},
            {"weight_bytes", quantity(18)},
            {"gradient_bytes", quantity(19)}}},
          {"stops_recompute_early", quantity(true)},
          {"selective_recompute", "every_second_product"},
          {"tensor_collectives",
           {{"copies", quantity(1.5)},
            {"hidden_forward", quantity(0.125)},
            {"slowdown", quantity(1.25)},
            {"slowdown_across_nodes", quantity(1.75)},
            {"hidden_backward", quantity(0.375)},
            {"fp8_share", quantity(0.625)}}},
          {"overlap",
           {{"point_to_point", quantity(true)},
            {"gather", quantity(false)},
            {"reduce", quantity(true)},
            {"tax", quantity(0.75)},
            {"tax_one_rank_per_node", quantity(0.0625)}}},
          {"pipeline_transfers", quantity(12)},
          {"scatters_sends", quantity(true)},
          {"host",
           {{"kernel_us", quantity(101)},
            {"collective_us", quantity(102)},
            {"per_rank_across_nodes_us", quantity(103)},
            {"per_rank_pipelined_us", quantity(104)},
            {"per_rank_pipelined_across_nodes_us", quantity(105)},
            {"message_us", quantity(106)},
            {"step_us", quantity(107)},
            {"sharded_step_us", quantity(108)}}},
          {"reached_rates",
           {{"products", quantity(0.9)}, {"network", quantity(0.8)}}},
          {"memory",
           {{"saves_as_produced", quantity(true)},
            {"cross_entropy_bytes", quantity(21)},
            {"bucket_bytes", quantity(22)},
            {"cached_share", quantity(0.03)}}},
          {"accuracy", json::array({{{"device", "new"},
                                     {"runs", quantity(23)},
                                     {"most_devices", quantity(24)},
                                     {"low", quantity(0.95)},
                                     {"high", quantity(1.05)}}})}};
}

json scoreFile() {
  json file = smallFile();
  file["attention"].erase("head_sizes");
  file["attention"].erase("rates");
  file["attention"]["kernel"] = "scores";
  file["attention"]["scores"] = {{"fused_forward_bytes", quantity(91)},
                                 {"fused_backward_bytes", quantity(92)},
                                 {"unfused_forward_bytes", quantity(93)},
                                 {"unfused_backward_bytes", quantity(94)},
                                 {"dropout_bytes", quantity(95)},
                                 {"saved_bytes", quantity(96)},
                                 {"fused_multiple", quantity(97)},
                                 {"fused_longest", quantity(98)}};
  file["blocking_launch_us"] = quantity(99);
  return file;
}

std::string messageOf(const std::string &text) {
  try {
    parseSoftware(text);
  } catch (const SoftwareError &error) {
    return error.what();
  }
  return "";
}

std::string messageWith(const char *pointer, const json &value) {
  json file = smallFile();
  file[json::json_pointer(pointer)] = value;
  return messageOf(file.dump());
}

void expectPass(const Pass &pass, int first) {
  EXPECT_EQ(pass.forwardBytes, first);
  EXPECT_EQ(pass.backwardBytes, first + 1);
  EXPECT_EQ(pass.forwardKernels, first + 2);
  EXPECT_EQ(pass.backwardKernels, first + 3);
  EXPECT_EQ(pass.kept, first + 4);
}

TEST(ParseSoftware, ReadsEveryNumber) {
  Software software = parseSoftware(smallFile().dump());
  EXPECT_EQ(software.name, "small");
  const AttentionKernel &attention = software.attention;
  EXPECT_FALSE(attention.keepsScores);
  EXPECT_EQ(attention.headSizes, (std::vector<int>{32, 64}));
  ASSERT_EQ(attention.rates.size(), 1u);
  EXPECT_EQ(attention.rates[0].device, "new");
  EXPECT_EQ(attention.rates[0].forward, 0.5);
  EXPECT_EQ(attention.rates[0].backward, 0.25);
  EXPECT_EQ(attention.copyForward, 1);
  EXPECT_EQ(attention.copyBackward, 2);
  EXPECT_EQ(attention.forwardKernels, 3);
  EXPECT_EQ(attention.backwardKernels, 4);
  const Passes &passes = software.passes;
  expectPass(passes.layerNorm, 10);
  expectPass(passes.rmsNorm, 20);
  expectPass(passes.residual, 30);
  expectPass(passes.activation, 40);
  expectPass(passes.gated, 50);
  expectPass(passes.rope, 60);
  expectPass(passes.dropout, 70);
  expectPass(passes.biasGradient, 80);
  EXPECT_EQ(software.crossEntropy, 5);
  EXPECT_EQ(software.parameters.gradient, 6);
  EXPECT_EQ(software.parameters.optimizer, 7);
  EXPECT_EQ(software.parameters.sweep, 8);
  EXPECT_EQ(software.parameters.normReads, 12);
  EXPECT_EQ(software.parameters.accumulation, 9);
  EXPECT_EQ(software.parameters.shardCopies, 11);
  EXPECT_EQ(software.parameters.bucket.value, 13e6);
  EXPECT_EQ(software.parameters.gatheredFp8, 0.875);
  EXPECT_EQ(software.parameters.flatRing.value, 14e9);
  EXPECT_DOUBLE_EQ(software.parameters.perSharer.value, 15e-6);
  EXPECT_TRUE(software.batchesProducts);
  EXPECT_TRUE(software.fusions.messages);
  EXPECT_EQ(software.fusions.devices,
            (std::vector<std::string>{"new", "newer"}));
  using Names = std::vector<std::string>;
  EXPECT_EQ(
      software.fusions.kernels,
      (std::array{Names{"add"}, Names{"mul"}, Names{"add", "dropout+add"}}));
  EXPECT_EQ(software.casts.input, 16);
  EXPECT_EQ(software.casts.normalised, 17);
  EXPECT_EQ(software.casts.weight, 18);
  EXPECT_EQ(software.casts.gradient, 19);
  EXPECT_TRUE(software.stopsRecomputeEarly);
  EXPECT_EQ(software.selective, SelectiveRule::everySecondProduct);
  EXPECT_EQ(software.tensor.copies, 1.5);
  EXPECT_EQ(software.tensor.hiddenForward, 0.125);
  EXPECT_EQ(software.tensor.hiddenBackward, 0.375);
  EXPECT_EQ(software.tensor.fp8, 0.625);
  EXPECT_EQ(software.tensor.slowdown, 1.25);
  EXPECT_EQ(software.tensor.slowdownAcrossNodes, 1.75);
  EXPECT_TRUE(software.overlap.pointToPoint);
  EXPECT_FALSE(software.overlap.gather);
  EXPECT_TRUE(software.overlap.reduce);
  EXPECT_EQ(software.overlap.tax, 0.75);
  EXPECT_EQ(software.overlap.taxOneRankPerNode, 0.0625);
  EXPECT_EQ(software.transfers, 12);
  EXPECT_TRUE(software.scattersSends);
  EXPECT_FALSE(software.blockingLaunch.has_value());
  const HostLaunch &host = software.host;
  EXPECT_DOUBLE_EQ(host.kernel.value, 101e-6);
  EXPECT_DOUBLE_EQ(host.collective.value, 102e-6);
  EXPECT_DOUBLE_EQ(host.perRankAcrossNodes.value, 103e-6);
  EXPECT_DOUBLE_EQ(host.perRankPipelined.value, 104e-6);
  EXPECT_DOUBLE_EQ(host.perRankPipelinedAcrossNodes.value, 105e-6);
  EXPECT_DOUBLE_EQ(host.message.value, 106e-6);
  EXPECT_DOUBLE_EQ(host.step.value, 107e-6);
  EXPECT_DOUBLE_EQ(host.shardedStep.value, 108e-6);
  EXPECT_EQ(software.reached, (ReachedRates{0.9, 0.8}));
  EXPECT_EQ(software.memory, (FrameworkMemory{true, 21, 22, 0.03}));
  EXPECT_EQ(software.attention.copyKept, 20);
  EXPECT_EQ(software.accuracy,
            (std::vector<Accuracy>{{"new", 23, 24, 0.95, 1.05}}));
}

// Large products and the network between nodes change; all else stays.
TEST(MachineUnder, HasTheRatesThatTheSoftwareReaches) {
  Software software;
  software.reached = {0.5, 0.25};
  Machine machine = loadMachine("dgx-h100");
  machine.device.ownGemmEfficiency[1] = 0.8;
  const Machine under = machineUnder(software, machine);
  EXPECT_EQ(under.device.gemmEfficiency, machine.device.gemmEfficiency / 2);
  EXPECT_EQ(under.device.gemmEfficiencyFp8,
            machine.device.gemmEfficiencyFp8 / 2);
  EXPECT_EQ(under.device.ownGemmEfficiency[1], 0.4);
  EXPECT_EQ(under.device.bandwidthEfficiency,
            machine.device.bandwidthEfficiency);
  EXPECT_EQ(under.levels[0].bandwidth, machine.levels[0].bandwidth);
  EXPECT_EQ(under.levels[1].bandwidth, machine.levels[1].bandwidth / 4);
  EXPECT_EQ(under.levels[1].latency, machine.levels[1].latency);
}

TEST(ParseSoftware, ReadsTheScoresOfOlderSoftware) {
  Software software = parseSoftware(scoreFile().dump());
  EXPECT_TRUE(software.attention.keepsScores);
  const ScoreTraffic &scores = software.attention.scores;
  EXPECT_EQ(scores.fusedForward, 91);
  EXPECT_EQ(scores.fusedBackward, 92);
  EXPECT_EQ(scores.unfusedForward, 93);
  EXPECT_EQ(scores.unfusedBackward, 94);
  EXPECT_EQ(scores.dropout, 95);
  EXPECT_EQ(scores.saved, 96);
  EXPECT_EQ(scores.fusedMultiple, 97);
  EXPECT_EQ(scores.fusedLongest, 98);
  ASSERT_TRUE(software.blockingLaunch.has_value());
  EXPECT_DOUBLE_EQ(software.blockingLaunch->value, 99e-6);
}

TEST(ParseSoftware, AValueWithoutASourceIsRejected) {
  EXPECT_EQ(messageWith("/overlap/tax", 0.5),
            "/overlap/tax: needs a source; write {\"value\": ..., "
            "\"source\": \"where it is from\"}");
  int values = 0;
  for (const json &whole : {smallFile(), scoreFile()}) {
    json flat = whole.flatten();
    for (const auto &[pointer, value] : flat.items()) {
      if (!pointer.ends_with("/source"))
        continue;
      ++values;
      json file = flat;
      file.erase(pointer);
      EXPECT_EQ(messageOf(file.unflatten().dump()),
                pointer + ": must say where the number is from");
    }
  }
  // Both files have 93 values: passes (40), parameters (10), two lists of
  // collectives (6 and 5), casts (4), joins (5), the host (8), reached rates
  // (2), memory (4), accuracy (4) and others (5). For attention, one file has 4
  // + 4 values and the other 8 + 5. One file also has a launch time.
  EXPECT_EQ(values, 2 * 93 + 8 + 13 + 1);
}

TEST(ParseSoftware, EveryKeyIsNeeded) {
  // Objects, texts and the list of rates are required, too.
  std::vector<std::string> missing;
  for (const char *key :
       {"name", "attention", "passes", "cross_entropy_bytes", "parameters",
        "stops_recompute_early", "tensor_collectives", "overlap",
        "pipeline_transfers", "joins_products", "selective_recompute",
        "scatters_sends"}) {
    json file = smallFile();
    file.erase(key);
    EXPECT_EQ(messageOf(file.dump()), std::string("/") + key + ": is missing");
  }
  // Some members are optional.
  json rare = smallFile();
  for (const char *key :
       {"gathered_fp8_share", "flat_ring_GBps", "per_sharer_us"})
    rare["parameters"].erase(key);
  rare.erase("fp8_casts");
  rare.erase("joins");
  rare.erase("host");
  rare.erase("reached_rates");
  rare.erase("memory");
  rare.erase("accuracy");
  rare["attention"].erase("copy_kept_bytes");
  rare["passes"]["rope"].erase("kept_bytes");
  for (const char *key : {"fp8_share", "slowdown", "slowdown_across_nodes"})
    rare["tensor_collectives"].erase(key);
  Software plain = parseSoftware(rare.dump());
  EXPECT_EQ(plain.parameters.gatheredFp8, 1.0);
  EXPECT_EQ(plain.parameters.flatRing.value, 0.0);
  EXPECT_EQ(plain.tensor.fp8, 1.0);
  EXPECT_EQ(plain.tensor.slowdown, 1.0);
  EXPECT_EQ(plain.tensor.slowdownAcrossNodes, 1.0);
  EXPECT_EQ(plain.host, HostLaunch{});
  EXPECT_EQ(plain.reached, ReachedRates{});
  EXPECT_EQ(plain.memory, FrameworkMemory{});
  EXPECT_TRUE(plain.accuracy.empty());
  EXPECT_EQ(plain.attention.copyKept, 0.0);
  EXPECT_EQ(plain.passes.rope.kept, 0.0);
  EXPECT_EQ(plain.casts, CastTraffic{});
  EXPECT_EQ(plain.fusions, KernelFusions{});
  rare = smallFile();
  rare["joins"].erase("messages");
  EXPECT_FALSE(parseSoftware(rare.dump()).fusions.messages);
  for (const char *key : {"kernel", "head_sizes", "rates"}) {
    json file = smallFile();
    file["attention"].erase(key);
    EXPECT_NE(messageOf(file.dump())
                  .find(std::string("/attention/") + key + ": is missing"),
              std::string::npos)
        << messageOf(file.dump());
  }
  json file = scoreFile();
  file["attention"].erase("scores");
  EXPECT_EQ(messageOf(file.dump()), "/attention/scores: is missing");
}

TEST(ParseSoftware, RunsOnMoreDevicesFollow) {
  json file = smallFile();
  json more = file["accuracy"][0];
  more["most_devices"]["value"] = 48;
  file["accuracy"].push_back(more);
  EXPECT_EQ(parseSoftware(file.dump()).accuracy.size(), 2U);
  file["accuracy"].push_back(more);
  EXPECT_EQ(messageOf(file.dump()),
            "/accuracy: entries of one device must have ascending "
            "most_devices");
  EXPECT_EQ(messageWith("/accuracy/0/low/value", 1.1),
            "/accuracy: low must be at most high");
}

TEST(ParseSoftware, AValueOfTheWrongKindIsRejected) {
  EXPECT_EQ(messageWith("/overlap/gather/value", 1),
            "/overlap/gather/value: must be true or false, got 1");
  EXPECT_EQ(messageWith("/overlap/tax/value", 1.5),
            "/overlap/tax/value: must be at least 0 and at most 1, got 1.5");
  EXPECT_EQ(messageWith("/attention/rates/0/forward/value", 0),
            "/attention/rates/0/forward/value: must be above 0 and at most 1, "
            "got 0");
  EXPECT_EQ(messageWith("/attention/head_sizes/value", {64, 64}),
            "/attention/head_sizes: must be in strictly ascending order");
  EXPECT_EQ(messageWith("/attention/head_sizes/value", json::array()),
            "/attention/head_sizes/value: must be an array of numbers, not "
            "empty");
  EXPECT_EQ(messageWith("/joins/bf16/value", json::array()),
            "/joins/bf16/value: must be an array, not empty");
  EXPECT_EQ(messageWith("/joins/devices/value/1", 3),
            "/joins/devices/value/1: must be a string");
  EXPECT_EQ(messageWith("/attention/kernel", "flash"),
            "/attention/kernel: must be one of \"fused\", \"scores\", got "
            "\"flash\"; the nearest is \"fused\"");
  EXPECT_EQ(messageWith("/passes/rope/forward_bytes/value", -1),
            "/passes/rope/forward_bytes/value: must be at least 0 and at most "
            "10000, got -1");
  EXPECT_EQ(messageWith("/passes/rope", 3),
            "/passes/rope: must be an object, got 3");
  EXPECT_EQ(messageWith("/passes/ropes", pass(1)),
            "/passes/ropes: unknown key; the nearest valid key is \"rope\"");
  // A fused attention kernel has no figures for scores.
  EXPECT_EQ(messageWith("/attention/scores", json::object()).substr(0, 31),
            "/attention/scores: unknown key;");
}

TEST(ParseSoftware, MalformedJsonIsReportedWithItsPlace) {
  EXPECT_EQ(messageOf("{\n  \"name\": NaN}").substr(0, 5), "2:11:");
  EXPECT_EQ(messageOf(R"({"a": 1, "a": 2})"), "/a: the key is given twice");
}

TEST(FormatSoftware, RoundTrips) {
  for (const json &file : {smallFile(), scoreFile()}) {
    // All sources have the same text here, so the file is reproduced exactly.
    std::string text = formatSoftware(parseSoftware(file.dump()), "made up");
    EXPECT_EQ(json::parse(text), file);
  }
  for (const std::string &name : softwareNames()) {
    std::string text = formatSoftware(loadSoftware(name), "a test");
    EXPECT_EQ(formatSoftware(parseSoftware(text), "a test"), text) << name;
  }
}

TEST(SoftwarePresets, EqualTheFilesOfExamples) {
  std::vector<std::string> names = softwareNames();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  for (const char *name :
       {"alpa", "bloom", "deepspeed-2021", "fms", "gpt-neox", "internevo",
        "llm.c", "megatron-2020", "megatron-2021", "megatron-2022", "mosaic",
        "mtplan", "nemo-24", "torchtitan-compile", "torchtitan-eager",
        "vtrain"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  std::filesystem::path folder =
      std::filesystem::path(MTPLAN_SOURCE_DIR) / "examples/software";
  std::size_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json")
      continue;
    ++files;
    std::string name = entry.path().stem().string();
    Software fromFile = loadSoftware(entry.path().string());
    EXPECT_EQ(fromFile.name, name);
    EXPECT_EQ(formatSoftware(fromFile, ""),
              formatSoftware(loadSoftware(name), ""));
  }
  EXPECT_EQ(files, names.size());
}

TEST(SoftwarePresets, OursIsTheDefault) {
  EXPECT_EQ(defaultSoftware().name, "mtplan");
  EXPECT_EQ(&defaultSoftware(), &defaultSoftware());
}

TEST(LoadSoftware, NamesThePresetsIfNotFound) {
  try {
    loadSoftware("megatron");
    FAIL();
  } catch (const SoftwareError &error) {
    EXPECT_EQ(std::string(error.what())
                  .find("no software file \"megatron\" can be read, and the "
                        "presets are: alpa, bloom, "),
              0u)
        << error.what();
  }
}

} // namespace
