//===- fit_hardware_test.cpp - mtplan fit-hardware ------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/machine/machine_json.h"
#include "tests/tools/command_testing.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using testing::HasSubstr;

std::string exampleMeasurements() {
  return std::string(MTPLAN_SOURCE_DIR) +
         "/examples/measurements/a100-published.json";
}

// The figures are published for A100 servers: large products reach 0.82 of
// peak, memory 1680 of 2039 GB/s, and all-reduce about 230 GB/s
// (docs/machine-format.md).
TEST(FitHardware, FitsAMachineFileThatThePlannerAccepts) {
  std::string path = testing::TempDir() + "mtplan_fitted.json";
  Ran ran({"fit-hardware", exampleMeasurements(), "-o", path});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out,
              HasSubstr("a100-published: 6 figures from 40 measurements"));
  EXPECT_THAT(ran.out, HasSubstr("/levels/0/latency_us"));
  EXPECT_THAT(ran.out, HasSubstr("Predicted against measured"));
  EXPECT_THAT(ran.out, HasSubstr("all_reduce  33 rows"));
  planner::Machine machine = planner::loadMachine(path);
  EXPECT_NEAR(machine.device.gemmEfficiency, 0.83, 0.03);
  EXPECT_NEAR(machine.device.bandwidthEfficiency, 0.823, 0.005);
  EXPECT_NEAR(machine.levels[0].bandwidth.value, 230e9, 15e9);
  EXPECT_LT(machine.levels[0].latency.value, 2e-6);
  Ran planned = runExample("gpt2-1.2b", {"--hardware", path});
  EXPECT_EQ(planned.code, kDone) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("a100-published  8 x A100-SXM4-80GB"));
}

// The GPU that was measured trained these models in these times: medians of
// twelve steps of eight samples of 1,024 tokens (bench/results).
TEST(FitHardware, PredictsTheTrainingsOfTheMeasuredGpu) {
  const std::string path = testing::TempDir() + "mtplan_h200.json";
  ASSERT_EQ(Ran({"fit-hardware",
                 std::string(MTPLAN_SOURCE_DIR) +
                     "/examples/measurements/h200-mtrun.json",
                 "-o", path})
                .code,
            kDone);
  for (const auto &[model, seconds] :
       {std::pair("gpt2-1.2b", 0.1376), std::pair("llama-3.2-1b", 0.1159),
        std::pair("qwen2.5-1.5b", 0.1469)}) {
    Ran planned(
        {std::string(MTPLAN_SOURCE_DIR) + "/examples/" + model + ".json",
         "--hardware", path, "--gpus", "1", "--seq", "1024", "--global-batch",
         "8", "--micro-batch", "8", "--precision", "bf16", "--json"});
    ASSERT_EQ(planned.code, kDone) << planned.err;
    const double predicted =
        nlohmann::json::parse(planned.out)["prediction"]["step_time_s"];
    EXPECT_NEAR(predicted / seconds, 1.0, 0.04) << model;
  }
}

TEST(FitHardware, WithoutAFileTheMachineIsTheOutput) {
  Ran ran({"fit-hardware", exampleMeasurements()});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_NO_THROW(planner::parseMachine(ran.out));
  EXPECT_THAT(ran.err, HasSubstr("6 figures from 40 measurements"));
}

TEST(FitHardware, IsTheSameEachTime) {
  Ran one({"fit-hardware", exampleMeasurements()});
  Ran two({"fit-hardware", exampleMeasurements()});
  EXPECT_EQ(one.out, two.out);
  EXPECT_EQ(one.err, two.err);
}

TEST(FitHardware, NamesTheFileOfAnError) {
  std::vector<std::string> errors;
  std::string path = testing::TempDir() + "mtplan_measured.json";
  ASSERT_TRUE(writeTextFile(path, R"({
  "source": "a test",
  "machine": {
    "name": "ours",
    "devices_per_node": { "value": 8, "source": "a test" },
    "device": "H100-SXM5-80GB",
    "link": { "bandwidth_GBps": "fit" }
  },
  "collectives": []
})",
                            errors));
  Ran undetermined({"fit-hardware", path});
  EXPECT_EQ(undetermined.code, kBadInput);
  EXPECT_EQ(undetermined.out, "");
  EXPECT_EQ(undetermined.err,
            "error: " + path +
                ": /machine/link/bandwidth_GBps: no measurement determines "
                "it; measure collectives: of at least 100 MB over 2 or "
                "more ranks, which reach \"link\"\n");
  ASSERT_TRUE(writeTextFile(path, "{}", errors));
  Ran empty({"fit-hardware", path});
  EXPECT_EQ(empty.code, kBadInput);
  EXPECT_THAT(empty.err, HasSubstr("error: " + path + ": /source: "));
  EXPECT_THAT(empty.err, HasSubstr("error: " + path + ": /machine: "));
  EXPECT_EQ(Ran({"fit-hardware", path + ".no"}).code, kBadInput);
  EXPECT_EQ(Ran({"fit-hardware"}).code, kBadInput);
  EXPECT_EQ(Ran({"fit-hardware", "--out"}).err,
            "error: --out: no such flag; nearest is --output\n"
            "error: MEASUREMENTS is required\n"
            "mtplan fit-hardware --help lists the flags\n");
  EXPECT_EQ(Ran({"fit-hardware", exampleMeasurements(), "-o", "-"}).code,
            kBadInput);
  EXPECT_EQ(
      Ran({"fit-hardware", exampleMeasurements(), "-o", "/no/such/folder/f"})
          .code,
      kBadInput);
}

TEST(FitHardware, KeepsInputFiles) {
  std::string path = testing::TempDir() + "mtplan_measured_kept.json";
  std::vector<std::string> errors;
  const std::string text = *readTextFile(exampleMeasurements(), errors);
  ASSERT_TRUE(writeTextFile(path, text, errors));
  Ran ran({"fit-hardware", path, "-o", path});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_EQ(ran.err, "error: -o: " + path +
                         " is what MEASUREMENTS names; give it another "
                         "name\n");
  EXPECT_EQ(*readTextFile(path, errors), text);
}

TEST(FitHardware, HasItsOwnHelp) {
  Ran ran({"fit-hardware", "--help"});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.out, HasSubstr("MEASUREMENTS"));
  EXPECT_THAT(Ran({"--help"}).out, HasSubstr("mtplan fit-hardware"));
}

} // namespace
} // namespace mtplan::tools
