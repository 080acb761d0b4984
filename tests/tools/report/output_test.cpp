//===- output_test.cpp - Output of the command ----------------------------===//

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tools/text/units_text.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> keysOf(const Json &object) {
  std::vector<std::string> keys;
  for (const auto &[key, value] : object.items())
    keys.push_back(key);
  return keys;
}

Json jsonOfExample(const std::string &name,
                   std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  Ran ran = runExample(name, std::move(arguments));
  EXPECT_EQ(ran.err, "");
  return Json::parse(ran.out);
}

// If `expert` is the only split, tp splits the experts' products but not
// attention, and the proof holds.
TEST(Json, TensorAxisSplitsExperts) {
  Json report =
      jsonOfExample("tiny-mixtral", {"--tp", "4", "--gpus", "4", "--splits",
                                     "expert", "--verify"});
  std::set<std::string> split;
  for (const Json &op : report["plan"]["ops"])
    if (op["phase"] == "forward" && op["strategy"] == "expert")
      split.insert(op["label"]);
  EXPECT_TRUE(split.contains("h.*.moe.gate"));
  EXPECT_TRUE(split.contains("h.*.moe.down"));
  EXPECT_FALSE(split.contains("h.*.attn.q"));
  EXPECT_TRUE(report["proof"]["holds"]);
}

TEST(Json, HasTheDocumentedKeys) {
  Json report = jsonOfExample("tiny-gpt2", {"--tp", "4", "--gpus", "8"});
  EXPECT_THAT(keysOf(report),
              ElementsAre("mtplan", "model", "hardware", "plan", "prediction",
                          "collectives", "search", "alternatives", "notes"));
  EXPECT_THAT(keysOf(report["plan"]),
              ElementsAre("dp", "tp", "pp", "cp", "ep", "virtual_stages",
                          "schedule", "layers", "zero", "zero_ranks",
                          "recompute", "offload", "tiles", "micro_batch",
                          "micro_batches", "global_batch", "sequence_parallel",
                          "kinds", "ops", "parameters"));
  EXPECT_THAT(keysOf(report["plan"]["ops"][0]),
              ElementsAre("segment", "first", "copies", "label", "kind",
                          "phase", "strategy", "local_shape", "layout"));
  EXPECT_THAT(keysOf(report["prediction"]),
              ElementsAre("step_time_s", "step_interval_s", "tokens_per_s",
                          "model_tflops_per_gpu", "mfu", "memory_bytes",
                          "host_memory_bytes", "peak", "stages", "breakdown_s",
                          "margins_bytes", "unvalidated"));
  EXPECT_THAT(keysOf(report["prediction"]["memory_bytes"]),
              ElementsAre("parameters", "gradients", "optimizer", "activations",
                          "workspace", "spare", "reserved", "total", "limit"));
  EXPECT_THAT(keysOf(report["collectives"][0]),
              ElementsAre("kind", "axis", "bytes", "count_per_step", "phase",
                          "cause", "segment", "count_per_micro_batch",
                          "time_s"));
  EXPECT_THAT(keysOf(report["search"]),
              ElementsAre("candidates", "pruned", "solved", "refused",
                          "unreached", "time_s", "optimal", "gap",
                          "slower_than_fastest", "lower_bound_s",
                          "rejections"));
  EXPECT_TRUE(report["search"]["time_s"].is_null());
  EXPECT_EQ(report["hardware"]["gpus"], 8);
  EXPECT_EQ(report["hardware"]["nodes"], 1);
  EXPECT_EQ(report["plan"]["dp"], 2);
}

// Adds the keys of `value` to `keys` that `text`, docs/json-output.md, does not
// have as "`key`" or "`parent.key`", with or without "[]".
void findUndocumented(const Json &value, const std::string &text,
                      std::set<std::string> &keys) {
  if (value.is_object())
    for (const auto &[key, member] : value.items()) {
      bool named = false;
      for (const char *start : {"`", "."})
        for (const char *end : {"`", "[]`"})
          named = named || text.find(start + key + end) != text.npos;
      if (!named)
        keys.insert(key);
      findUndocumented(member, text, keys);
    }
  else if (value.is_array() && !value.empty())
    findUndocumented(value.front(), text, keys);
}

TEST(Json, IsDocumentedKeyByKey) {
  std::ifstream file(MTPLAN_SOURCE_DIR "/docs/json-output.md");
  std::stringstream text;
  text << file.rdbuf();
  std::set<std::string> keys;
  findUndocumented(jsonOfExample("tiny-gpt2", {"--tp", "4", "--verify"}),
                   text.str(), keys);
  findUndocumented(jsonOfExample("tiny-gpt2", {"--memory-gib", "1"}),
                   text.str(), keys);
  EXPECT_THAT(keys, testing::IsEmpty());
}

TEST(Json, PartsSumToTotals) {
  Json report = jsonOfExample("tiny-llama", {"--gpus", "4", "--tp", "2"});
  const Json &prediction = report["prediction"];
  double parts = 0;
  for (const auto &[key, seconds] : prediction["breakdown_s"].items())
    parts += seconds.get<double>();
  double step = prediction["step_time_s"];
  EXPECT_NEAR(parts, step, 1e-12 * step);
  double bytes = 0;
  for (const auto &[key, size] : prediction["memory_bytes"].items())
    if (key != "total" && key != "limit")
      bytes += size.get<double>();
  EXPECT_NEAR(bytes, prediction["memory_bytes"]["total"].get<double>(), 1.0);
  double margins = 0;
  for (const auto &[key, size] : prediction["margins_bytes"].items())
    margins += size.get<double>();
  EXPECT_NEAR(margins, prediction["memory_bytes"]["reserved"].get<double>(),
              1.0);
  double tensor = 0, data = 0;
  for (const Json &entry : report["collectives"])
    (entry["axis"] == "tp" && entry["phase"] != "update" ? tensor : data) +=
        entry["time_s"].get<double>() * entry["count_per_step"].get<double>();
  EXPECT_NEAR(tensor, prediction["breakdown_s"]["tensor_communication"],
              1e-9 * step);
  EXPECT_NEAR(data, prediction["breakdown_s"]["data_communication"],
              1e-9 * step);
}

// Once per step, all ranks exchange three numbers in double precision: two for
// the gradient norm, which also shows an overflow, and one for the loss.
TEST(Json, ListsWhatAllRanksExchange) {
  for (const char *gpus : {"1", "4"}) {
    const Json report = jsonOfExample("tiny-gpt2", {"--gpus", gpus});
    Json found = Json::array();
    for (const Json &entry : report["collectives"])
      if (entry["axis"] == "all")
        found.push_back({entry["kind"], entry["bytes"], entry["count_per_step"],
                         entry["cause"]});
    EXPECT_EQ(found, std::string(gpus) == "1"
                         ? Json::array()
                         : Json({{"all_gather", 24.0, 1,
                                  "gradient norm, overflow, loss"}}));
  }
}

TEST(Json, SizesOfParametersAddUp) {
  Json report = jsonOfExample("tiny-gpt2", {"--gpus", "4", "--tp", "2"});
  std::set<std::string> seen; // a tied weight is listed in each of its segments
  double bytes = 0;
  for (const Json &parameter : report["plan"]["parameters"]) {
    double elements = 1;
    for (const Json &size : parameter["local_shape"])
      elements *= size.get<double>();
    EXPECT_EQ(parameter["bytes"], elements * 2) << parameter;
    EXPECT_EQ(parameter["global_shape"].size(),
              parameter["local_shape"].size());
    if (seen.insert(parameter["label"].get<std::string>() +
                    parameter["first"].dump())
            .second)
      bytes +=
          parameter["copies"].get<double>() * parameter["bytes"].get<double>();
  }
  EXPECT_EQ(bytes, report["prediction"]["memory_bytes"]["parameters"]);
}

TEST(Json, HasEveryStageAndThePeak) {
  Json report = jsonOfExample("tiny-gpt2", {"--gpus", "4", "--pp", "2"});
  const Json &prediction = report["prediction"], &stages = prediction["stages"];
  ASSERT_EQ(stages.size(), 2);
  double most = 0;
  for (const Json &stage : stages) {
    most = std::max(most, stage["memory_bytes"]["total"].get<double>());
    EXPECT_GT(stage["time_s"], 0);
    EXPECT_LE(stage["time_s"], prediction["step_time_s"]);
  }
  EXPECT_EQ(most, prediction["memory_bytes"]["total"]);
  const Json &peak = prediction["peak"];
  const int stage = peak["stage"];
  EXPECT_EQ(stages[stage]["memory_bytes"]["total"], most);
  EXPECT_EQ(peak["rank"], 2 * stage);
  bool found = false;
  for (const Json &op : report["plan"]["ops"])
    found |= op["label"] == peak["operator"] && op["phase"] == peak["phase"];
  EXPECT_TRUE(found) << peak;
}

TEST(Json, CountsKindsOfLayers) {
  EXPECT_EQ(jsonOfExample("tiny-gpt2", {"--gpus", "2"})["plan"]["kinds"], 1);
  // Pinning one layer of two leaves two kinds.
  EXPECT_EQ(
      jsonOfExample("tiny-gpt2", {"--gpus", "2", "--tp", "2", "--pin",
                                  "h.0.mlp.fc1=replicated"})["plan"]["kinds"],
      2);
}

// GPT-2 with hidden size h, sequence s, n layers and v rows has 72 n h^2 (1 + s
// / (6 h) + v / (12 n h)) flops per token (Narayanan et al. 2021, 5.1, less the
// quarter that is recomputation).
TEST(Json, CountsTheModelsProducts) {
  Json report = jsonOfExample(
      "tiny-gpt2", {"--gpus", "4", "--dp", "2", "--micro-batch", "16"});
  const double h = 64, s = 32, n = 2, v = 512;
  double perToken = 72 * n * h * h * (1 + s / (6 * h) + v / (12 * n * h));
  const Json &prediction = report["prediction"];
  double rate = perToken * prediction["tokens_per_s"].get<double>() / 4;
  EXPECT_NEAR(prediction["model_tflops_per_gpu"].get<double>() * 1e12, rate,
              1e-9 * rate);
  EXPECT_NEAR(prediction["mfu"].get<double>(),
              rate / report["hardware"]["peak_flops"].get<double>(), 1e-9);
  EXPECT_NEAR(prediction["tokens_per_s"].get<double>() *
                  prediction["step_time_s"].get<double>(),
              512 * s, 1e-6);
}

TEST(Output, IsTheSameEachTime) {
  for (const char *form : {"--json", "--verify", "--emit=mlir"}) {
    std::vector<std::string> arguments{"--gpus", "8", "--tp", "4", form};
    Ran first = runExample("tiny-gpt2", arguments);
    EXPECT_EQ(first.code, kDone) << form << '\n' << first.err;
    EXPECT_EQ(first.out, runExample("tiny-gpt2", arguments).out) << form;
  }
}

TEST(Output, HasNoColourUnlessAsked) {
  EXPECT_EQ(runExample("tiny-gpt2", {}).out.find('\033'), std::string::npos);
  Ran coloured({examplePath("tiny-gpt2")}, {true, false});
  EXPECT_NE(coloured.out.find("\033[1m"), std::string::npos);
  Ran progress({examplePath("tiny-gpt2")}, {false, true});
  EXPECT_THAT(progress.err, HasSubstr("searching..."));
}

TEST(Screen, ShowsTheFactsOnOneScreen) {
  Ran ran =
      runExample("gpt2-1.2b", {"--gpus", "8", "--hardware", "dgx-2h", "--tp",
                               "8", "--splits", "column,row,head,vocab"});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_EQ(ran.err, "");
  for (const char *part :
       {"gpt2-1.2b  1.21 B parameters", "dgx-2h  8 x V100-SXM3-32GB",
        "Plan  tp 8", "attn.q, k, v", "column", "head", "row", "all_reduce tp",
        "Step  ", "in 8 of 10 cases", "MFU", "Memory  ", "optimizer",
        "Communication  ", "Alternatives"})
    EXPECT_THAT(ran.out, HasSubstr(part));
  EXPECT_LE(std::ranges::count(ran.out, '\n'), 40);
}

// The interval of a step names the runs behind it, or says that there are none.
TEST(Screen, SaysWhichRunsValidateTheStep) {
  const auto predictionOf = [](const char *software) -> Json {
    return jsonOfExample("gpt2-1.2b",
                         {"--gpus", "8", "--software", software})["prediction"];
  };
  const Json validated = predictionOf("nemo-24")["step_interval_s"];
  EXPECT_EQ(validated["runs"], 47);
  EXPECT_EQ(validated["device"], "hopper");
  EXPECT_EQ(validated["most_gpus"], 128);
  const Json prediction = predictionOf("mtplan");
  const Json &none = prediction["step_interval_s"];
  EXPECT_EQ(none["runs"], 0);
  EXPECT_TRUE(none["device"].is_null());
  EXPECT_LT(none["low"], prediction["step_time_s"]);
  EXPECT_GT(none["high"], prediction["step_time_s"]);
  EXPECT_THAT(
      Ran({examplePath("gpt2-1.2b"), "--gpus", "8", "--software", "nemo-24"})
          .out,
      HasSubstr(" (47 measured runs on hopper), "));
  EXPECT_THAT(Ran({examplePath("gpt2-1.2b"), "--gpus", "8"}).out,
              HasSubstr(" (no measured run validates it), "));
}

// Two kinds of layers alternate on the chunks of the stages. Each kind is one
// block, whose layers are listed.
TEST(Screen, ShowsEqualLayersOnce) {
  const Ran ran(
      {examplePath("llama-3-70b"), "--gpus", "64", "--stage-layers", "even"});
  EXPECT_EQ(ran.code, kDone) << ran.err;
  EXPECT_LE(std::ranges::count(ran.out, '\n'), 40);
  const Ran uneven({examplePath("llama-3-70b"), "--gpus", "64"});
  EXPECT_LE(std::ranges::count(uneven.out, '\n'), 40);
  EXPECT_THAT(
      ran.out,
      testing::ContainsRegex(
          "\n  h\\.0\\.\\.4, 20\\.\\.24, \\.\\.\\. \\(20 layers\\)  +ln_1 "));
  EXPECT_THAT(ran.out,
              testing::ContainsRegex("\n  h\\.5\\.\\.19, .* layers\\)  +as "
                                     "above, but\n"));
  // With --explain, the collectives of each block are listed as well.
  const Ran more({examplePath("llama-3-70b"), "--gpus", "64", "--stage-layers",
                  "even", "--explain"});
  EXPECT_THAT(more.out,
              testing::ContainsRegex(
                  "\n    h\\.5\\.\\.19, .* layers\\)  forward  +[0-9]+ us +2 "
                  "all_to_all tp "));
}

// The traffic of an axis is that of the JSON report, per GPU.
TEST(Screen, SumsTheTrafficOfEachAxis) {
  std::vector<std::string> asked = {"--gpus", "8", "--pp",          "2",
                                    "--tp",   "2", "--dp",          "2",
                                    "--zero", "1", "--micro-batch", "4"};
  const Ran ran = runExample("gpt2-1.2b", asked);
  asked.emplace_back("--json");
  const Json report = Json::parse(runExample("gpt2-1.2b", asked).out);
  std::map<std::string, double> seconds, bytes;
  for (const Json &entry : report["collectives"]) {
    if (entry["axis"] == "all") // listed with --explain
      continue;
    const double count = entry["count_per_step"];
    seconds[entry["axis"]] += count * entry["time_s"].get<double>() / 2;
    bytes[entry["axis"]] += count * entry["bytes"].get<double>() / 2;
  }
  EXPECT_EQ(seconds.size(), 3U);
  for (const auto &[axis, time] : seconds)
    EXPECT_THAT(ran.out, testing::ContainsRegex(
                             "\n  " + axis + "  " + timeText({time}) + " +" +
                             bytesText({bytes[axis]}) + " in [0-9]+ "));
}

TEST(Screen, PrintsExpertCommunication) {
  const std::vector<std::string> asked = {
      "--gpus",      "64",           "--dp",          "64", "--ep",   "8",
      "--hardware",  "dgx-a100-80g", "--micro-batch", "1",  "--zero", "3",
      "--recompute", "full"};
  const Json parts = jsonOfExample("mixtral-8x7b", asked)["prediction"];
  const double seconds = parts["breakdown_s"]["expert_communication"];
  EXPECT_GT(seconds, 0);
  EXPECT_THAT(runExample("mixtral-8x7b", asked).out,
              HasSubstr("expert communication " + timeText({seconds}) + " ("));
}

TEST(Proof, IsPrintedAndHolds) {
  Ran ran = runExample("tiny-gpt2", {"--tp", "4", "--splits",
                                     "column,row,head,vocab", "--verify"});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_THAT(ran.out, HasSubstr("Proof  holds: "));
}

TEST(Infeasible, NamesTheNearestPlanAndRemedies) {
  // The weights, gradients and optimizer state of 8.3 billion parameters take
  // at least 124 GiB, more than two GPUs of 32 GB have.
  Ran ran = runExample("gpt2-8.3b", {"--gpus", "2", "--hardware", "dgx-2h"});
  EXPECT_EQ(ran.code, kNothingFits);
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, HasSubstr("Nothing fits"));
  EXPECT_THAT(ran.out, HasSubstr("Nearest: tp 2"));
  EXPECT_THAT(ran.out, HasSubstr("parameters "));
  EXPECT_THAT(ran.out, HasSubstr("--gpus 6 fits: tp 6"));
}

TEST(Infeasible, TriesWithoutFixedDegrees) {
  Ran ran = runExample("gpt2-8.3b",
                       {"--gpus", "8", "--hardware", "dgx-2h", "--dp", "8"});
  EXPECT_EQ(ran.code, kNothingFits);
  EXPECT_THAT(ran.out, HasSubstr("without --tp and --dp fits: tp 8"));
  // Each remedy is a single change, the mildest of its kind.
  EXPECT_THAT(ran.out, HasSubstr("  --zero 3 fits: dp 8, "));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("  --zero 1 fits")));
  Json report =
      Json::parse(runExample("gpt2-8.3b", {"--gpus", "8", "--hardware",
                                           "dgx-2h", "--dp", "8", "--json"})
                      .out);
  EXPECT_TRUE(report["plan"].is_null());
  EXPECT_EQ(report["nearest"]["dp"], 8);
  EXPECT_FALSE(report["remedies"].empty());
}

TEST(Emit, PrintsEveryStage) {
  struct Case {
    const char *stage, *has, *hasNot;
  };
  for (const Case &stage :
       {Case{"model", "mtp.segment @h", "mtp.backward"},
        Case{"differentiated", "mtp.backward", "mtp.strategy"},
        Case{"planned", "mtp.strategy", "mtp.partitioned"},
        Case{"partitioned", "mtp.partitioned", "mtp.reshard"}}) {
    Ran ran = runExample(
        "tiny-gpt2", {"--tp", "4", "--emit", "mlir", "--stage", stage.stage});
    EXPECT_EQ(ran.code, kDone) << stage.stage << '\n' << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(stage.has));
    EXPECT_THAT(ran.out, testing::Not(HasSubstr(stage.hasNot)));
  }
}

TEST(Dot, DrawsTheGraph) {
  std::string path = testing::TempDir() + "mtplan_graph.dot";
  EXPECT_EQ(runExample("tiny-gpt2", {"--tp", "4", "--dot", path}).code, kDone);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), testing::StartsWith("digraph"));
  EXPECT_THAT(text.str(), HasSubstr("label=\"h.*.mlp.fc1"));
  EXPECT_THAT(text.str(), HasSubstr("->"));
}

TEST(Help, ShowsFlagsAndExamples) {
  Ran ran({"--help"});
  EXPECT_EQ(ran.code, kDone);
  EXPECT_EQ(ran.err, "");
  for (const char *flag : {"--gpus",
                           "--hardware",
                           "--tp",
                           "--dp",
                           "--micro-batch",
                           "--global-batch",
                           "--seq",
                           "--layers",
                           "--precision",
                           "--splits",
                           "--sequence-parallel",
                           "--pin",
                           "--top",
                           "--json",
                           "--verify",
                           "--emit",
                           "--stage",
                           "--dot",
                           "--memory-gib",
                           "--timings",
                           "--version",
                           "Examples:",
                           "Exit status:"})
    EXPECT_THAT(ran.out, HasSubstr(flag));
  std::size_t last = 0;
  for (const char *heading : {"\nInput:\n", "\nParallelism:\n", "\nMemory:\n",
                              "\nSearch:\n", "\nOutput:\n", "\nExchange:\n"}) {
    const std::size_t at = ran.out.find(heading);
    ASSERT_NE(at, std::string::npos) << heading;
    EXPECT_GT(at, last) << heading;
    last = at;
  }
  Ran version({"--version"});
  EXPECT_EQ(version.code, kDone);
  EXPECT_THAT(version.out, testing::StartsWith("mtplan 0."));
}

} // namespace
} // namespace mtplan::tools
