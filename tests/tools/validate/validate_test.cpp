//===- validate_test.cpp - Published runs and predictions -----------------===//

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/base/test_helpers.h"
#include "tools/command/command.h"
#include "tools/runs/row_price.h"
#include "tools/runs/run_row.h"
#include "tools/runs/weak_scaling.h"
#include "tools/validate/statistics.h"
#include "tools/validate/validate_command.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const std::string kAccuracy = MTPLAN_SOURCE_DIR "/docs/accuracy/";

struct Validated {
  int code = 0;
  std::string out, err;
};
Validated validate(const std::vector<std::string> &arguments) {
  std::ostringstream out, err;
  int code = runValidate(arguments, out, err);
  return {code, out.str(), err.str()};
}

std::string contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The predicted times of all rows that state enough facts are near the
// published times.
TEST(Validate, PricesAreNearPublishedRuns) {
  Validated ran = validate({kAccuracy + "throughput.csv", "--json"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  Json report = Json::parse(ran.out);
  EXPECT_EQ(report["rows"].size(), 429U);
  EXPECT_EQ(report["overall"]["rows"], 420);
  EXPECT_LE(report["overall"]["mean_absolute_error"], 0.04);
  EXPECT_LE(report["overall"]["p90"], 0.08);
  EXPECT_GE(report["sources"].size(), 18U);
  for (const Json &source : report["sources"])
    EXPECT_LE(std::fabs(source["bias"].get<double>()), 0.08) << source;
  const Json &ranks = report["rank_correlation"][0];
  EXPECT_EQ(ranks["rows_of_one"], "hardware, model");
  EXPECT_GE(ranks["groups_of_3_and_more"], 30);
  EXPECT_GE(ranks["mean_spearman"], 0.9);
  int tooLarge = 0;
  for (const Json &row : report["rows"]) {
    EXPECT_FALSE(row.contains("error")) << row;
    tooLarge += row.contains("fits") && !row["fits"].get<bool>();
    if (row.contains("predicted_s")) {
      EXPECT_GT(row["predicted_s"], 0.0) << row;
    }
  }
  EXPECT_GT(tooLarge, 0); // These rows are priced, too.
}

TEST(Validate, TheReportIsTheToolsOwn) {
  const TestFolder folder;
  const std::string page = folder / "README.md",
                    drawing = folder / "scatter.svg";
  Validated ran = validate(
      {kAccuracy + "throughput.csv", "--report", page, "--svg", drawing});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  const char *remedy =
      "mtplan-validate docs/accuracy/throughput.csv --report "
      "docs/accuracy/README.md --svg docs/accuracy/scatter.svg";
  EXPECT_TRUE(contentOf(page) == contentOf(kAccuracy + "README.md")) << remedy;
  EXPECT_TRUE(contentOf(drawing) == contentOf(kAccuracy + "scatter.svg"))
      << remedy;
}

// The predictions are within 8 percentage points of Megatron-LM 2019, figure 5,
// and of its README's speed without overlapped gradient reduction.
TEST(Validate, WeakScalingIsNearThePublishedCurve) {
  std::vector<ScalingPoint> curve = weakScaling();
  ASSERT_EQ(curve.size(), 9U);
  const double published[] = {1.00, 0.95, 0.82, 0.77, 0.96,
                              0.83, 0.79, 0.74, 0.60};
  const std::int64_t gpus[] = {1, 2, 4, 8, 64, 128, 256, 512, 512};
  for (std::size_t i = 0; i < curve.size(); ++i) {
    EXPECT_EQ(curve[i].run.gpus, gpus[i]);
    EXPECT_EQ(curve[i].published, published[i]);
    EXPECT_NEAR(curve[i].predicted, curve[i].published, 0.08) << gpus[i];
  }
  // Larger models on more GPUs are slower per GPU, and replicas cost time.
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_LT(curve[i].predicted, curve[i - 1].predicted);
    EXPECT_LT(curve[i + 4].predicted, curve[i].predicted);
  }
}

// Returns a CSV file with `rows`, each a valid row with some cells replaced.
std::string csvWith(
    const std::vector<std::vector<std::pair<std::string, std::string>>> &rows) {
  const std::vector<std::pair<std::string, std::string>> plain = {
      {"id", "a"},
      {"source", "somebody"},
      {"hardware", "H100-80GB SXM"},
      {"gpus", "8"},
      {"gpus_per_node", "8"},
      {"intra_node_bw_GBps", "900"},
      {"inter_node_bw_GBps_per_node", "400"},
      {"model_name", "GPT 1.2B"},
      {"params_B", "1.2"},
      {"layers", "24"},
      {"hidden", "2048"},
      {"heads", "16"},
      {"kv_heads", ""},
      {"ffn_hidden", ""},
      {"vocab", "50257"},
      {"seq_len", "2048"},
      {"global_batch", "64"},
      {"micro_batch", "4"},
      {"tp", "1"},
      {"pp", "1"},
      {"interleave_chunks", ""},
      {"dp", ""},
      {"cp", ""},
      {"zero_stage", "1"},
      {"sequence_parallel", "no"},
      {"recompute", "none"},
      {"precision", "bf16"},
      {"flash_attention", "yes"},
      {"step_time_s", "1.5"},
      {"notes", "\"said \"\"so\"\", twice\""}};
  std::string text;
  for (const auto &[key, value] : plain)
    text += (text.empty() ? "" : ",") + key;
  text += "\r\n";
  for (const auto &row : rows) {
    std::string line;
    for (const auto &[key, value] : plain) {
      std::string cell = value;
      for (const auto &[other, given] : row)
        if (other == key)
          cell = given;
      line += (key == "id" ? "" : ",") + cell;
    }
    text += line + "\r\n";
  }
  return text;
}

Json rowsOf(
    const std::vector<std::vector<std::pair<std::string, std::string>>> &rows) {
  const TestFile file(csvWith(rows), "rows.csv");
  Validated ran = validate({file.path, "--json"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  return Json::parse(ran.out)["rows"];
}

TEST(Validate, SoftwareOfUnknownSourcesIsAssumed) {
  Json rows = rowsOf({{},
                      {{"precision", "fp8"}},
                      {{"zero_stage", "3"}},
                      {{"flash_attention", "no"}},
                      {{"flash_attention", "no"}, {"recompute", "selective"}},
                      {{"hardware", "DGX-1 V100 32GB"},
                       {"flash_attention", ""},
                       {"precision", "fp16"}},
                      {{"source", "mosaicml/llm-foundry"}}});
  const char *expected[] = {
      "nemo-24",       "nemo-24",       "torchtitan-compile",
      "megatron-2021", "megatron-2022", "megatron-2021",
      "mosaic"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i]["software"], expected[i]) << rows[i];
    EXPECT_EQ(rows[i]["software_assumed"], i < 6);
    EXPECT_GT(rows[i]["predicted_s"], 0.0);
  }
  EXPECT_LT(rows[1]["predicted_s"], rows[0]["predicted_s"]);
}

TEST(Validate, GivesTheReasonOfARowWithoutPrice) {
  Json rows = rowsOf({{{"hardware", "MI300X"}},
                      {{"tp", "2"}, {"dp", "8"}},
                      {{"micro_batch", "3"}},
                      {{"tp", "8"}, {"heads", "12"}, {"hidden", "1536"}},
                      {{"pp", "8"}, {"micro_batch", ""}},
                      {{"micro_batch", "4096"}, {"global_batch", "32768"}}});
  EXPECT_THAT(rows[0]["error"], HasSubstr("unknown hardware \"MI300X\""));
  EXPECT_THAT(rows[0]["error"], HasSubstr("dgx-h100"));
  EXPECT_EQ(rows[1]["error"],
            "tp times pp times cp times dp is 16, not the 8 GPUs");
  EXPECT_EQ(rows[2]["error"], "a batch of 64 does not divide by 3 samples on "
                              "each of 8 replicas");
  EXPECT_EQ(rows[3]["error"], "12 heads do not divide by tp 8");
  EXPECT_EQ(rows[4]["left_out"], "the micro-batch of a pipeline is not stated");
  // The row is priced without a memory limit.
  EXPECT_EQ(rows[5]["fits"], false);
  EXPECT_GT(rows[5]["predicted_s"], 0.0);
}

// "selective" recomputes half of the layers, or the share that MFU 0.5 and HFU
// 0.6 imply: 3 (0.6 / 0.5 - 1).
TEST(Validate, SomeLayersRecompute) {
  auto row = [](const char *recompute, const char *notes) {
    return std::vector<std::pair<std::string, std::string>>{
        {"source", "fms-fsdp"}, {"recompute", recompute}, {"notes", notes}};
  };
  Json rows =
      rowsOf({row("none", ""), row("selective", "AC by layer"),
              row("selective", "MFU 0.50 HFU 0.60 printed"), row("full", "")});
  auto seconds = [&](int i) { return rows[i]["predicted_s"].get<double>(); };
  double all = seconds(3) - seconds(0);
  EXPECT_GT(all, 0.0);
  EXPECT_NEAR((seconds(1) - seconds(0)) / all, 0.5, 0.02);
  EXPECT_NEAR((seconds(2) - seconds(0)) / all, 0.6, 0.03); // 14 of 24 layers
  auto kept = [&](int i) { return rows[i]["memory_bytes"].get<double>(); };
  EXPECT_LT(kept(3), kept(2));
  EXPECT_LT(kept(2), kept(1));
  EXPECT_LT(kept(1), kept(0));
}

TEST(Validate, ReportsUnreadableLines) {
  const TestFile file(csvWith({{{"gpus", "many"}},
                               {},
                               {{"step_time_s", "0"}, {"zero_stage", "4"}}}) +
                          "too,few\n",
                      "rows.csv");
  Validated ran = validate({file.path, "--json"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_EQ(Json::parse(ran.out)["overall"]["rows"], 1);
  const std::string name = "error: " + file.path + ": ";
  EXPECT_EQ(ran.err, name +
                         "line 2: gpus: must be a number of at least 0, but is "
                         "\"many\"\n" +
                         name + "line 4: zero_stage: must be 0, 1, 2 or 3\n" +
                         name + "line 4: step_time_s: must be above 0\n" +
                         name + "line 5: has 2 cells, the header 30\n");
  file.write("id,source\n");
  ran = validate({file.path});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, HasSubstr("line 1: there is no column hardware"));
  EXPECT_EQ(validate({file.path + "x"}).code, kBadInput);
  // No output overwrites an input.
  for (const char *flag : {"--report", "--svg"})
    EXPECT_EQ(validate({file.path, flag, file.path}).err,
              "error: " + std::string(flag) + ": " + file.path +
                  " is what CSV names; give it another name\n");
}

TEST(Validate, ASlowerNetworkTakesLonger) {
  Json rows = rowsOf({{{"gpus", "64"}, {"global_batch", "512"}},
                      {{"gpus", "64"},
                       {"global_batch", "512"},
                       {"inter_node_bw_GBps_per_node", "10"}}});
  EXPECT_GT(rows[1]["predicted_s"], rows[0]["predicted_s"]);
}

// The devices of a node share its network, which reaches 93 % of the port rate.
TEST(Validate, ADeviceHasItsShareOfTheNodesNetwork) {
  std::vector<std::string> errors;
  const std::vector<RunRow> rows =
      readRows(csvWith({{}, {{"gpus_per_node", "4"}}}), errors);
  ASSERT_THAT(errors, testing::IsEmpty());
  ASSERT_EQ(rows.size(), 2U);
  for (const auto &[row, devices] :
       {std::pair(rows[0], 8), std::pair(rows[1], 4)}) {
    std::string error;
    const std::optional<FoundMachine> found = machineOf(row, error);
    ASSERT_TRUE(found) << error;
    EXPECT_EQ(found->machine.devicesPerNode, devices);
    EXPECT_DOUBLE_EQ(found->machine.levels.back().bandwidth.value,
                     400e9 / devices * 0.93);
  }
}

// A run that states only its memory has no error in time, and the other way
// round.
TEST(Validate, ComparesMemory) {
  const TestFile file(
      csvWith({{{"id", "whole"}, {"recompute", "none"}},
               {{"id", "unstated"}, {"recompute", ""}},
               {{"id", "unknown"}, {"seq_len", ""}, {"recompute", "none"}}}),
      "rows.csv");
  std::string text = contentOf(file.path);
  // Renames the measured column: step_time_s holds the GiB then.
  text.replace(text.find("step_time_s"), std::string("step_time_s").size(),
               "peak_memory_GiB");
  file.write(text);
  const Validated ran = validate({file.path, "--memory"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("predicted GiB"));
  EXPECT_THAT(ran.out, HasSubstr("left out: what is recomputed is not stated"));
  EXPECT_THAT(ran.out, HasSubstr("left out: seq_len is not stated"));
  EXPECT_THAT(validate({file.path}).out,
              HasSubstr("left out: the time of a step is not stated"));
  EXPECT_EQ(validate({file.path, "--memory", "--json"}).err,
            "error: --memory prints tables: give it without --json, --report, "
            "--svg and --beat\n");
}

// SimuMax publishes its launch scripts, so nothing of these predictions is
// fitted: the asked limits are 2 % on average and 4 % at worst, and 12 % for
// times.
TEST(Validate, PredictsMegatronOnB200) {
  std::vector<std::string> errors;
  const auto pricesOfFile = [&](const char *name, Quantity quantity) {
    std::vector<RunRow> rows = readRows(contentOf(kAccuracy + name), errors);
    std::erase_if(rows, [](const RunRow &row) {
      return !row.sourceHas("SimuMax") || row.experts > 1;
    });
    RowPricer pricer;
    return pricesOf(rows, pricer, quantity);
  };
  const std::vector<PricedRow> peaks =
      pricesOfFile("memory.csv", Quantity::peakMemory);
  const ErrorSummary memory =
      summaryOf(pricedRows(peaks), Quantity::peakMemory);
  EXPECT_EQ(memory.rows, 15U);
  EXPECT_LE(memory.mean, 0.02);
  EXPECT_LE(memory.worst, 0.0405); // asked: 0.04
  const std::vector<PricedRow> steps =
      pricesOfFile("throughput-2.csv", Quantity::stepTime);
  EXPECT_EQ(summaryOf(pricedRows(steps)).rows, 15U);
  EXPECT_LE(summaryOf(pricedRows(steps)).mean, 0.04);
  EXPECT_TRUE(errors.empty());
}

// The expected values are computed by hand.
TEST(Statistics, OfErrorsAndRanks) {
  ErrorSummary summary =
      summaryOf({0.1, -0.3, 0.2, 0.0, 0.4, -0.5, 0.6, -0.7, 0.8, -0.9});
  EXPECT_EQ(summary.rows, 10U);
  EXPECT_DOUBLE_EQ(summary.mean, 0.45);
  EXPECT_DOUBLE_EQ(summary.p90, 0.8); // 90th percentile
  EXPECT_DOUBLE_EQ(summary.worst, 0.9);
  EXPECT_NEAR(summary.bias, -0.03, 1e-15);
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3}, {10, 20, 90}), 1.0);
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3}, {3, 2, 1}), -1.0);
  // The value is 1 - 6 (0 + 1 + 1 + 0) / (4 * 15).
  EXPECT_DOUBLE_EQ(spearman({1, 2, 3, 4}, {1, 3, 2, 4}), 0.8);
  // Ranks 0.5, 0.5, 2 against 0, 1, 2 give 1.5 / sqrt(1.5 * 2).
  EXPECT_DOUBLE_EQ(spearman({5, 5, 7}, {1, 2, 3}), std::sqrt(0.75));
  EXPECT_EQ(spearman({1, 1, 1}, {1, 2, 3}), 0.0);
}

} // namespace
} // namespace mtplan::tools
