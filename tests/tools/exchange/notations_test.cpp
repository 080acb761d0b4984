//===- notations_test.cpp - Plans in other notations ----------------------===//

#include <fstream>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"
#include "tools/exchange/sharding_notation.h"
#include "tools/exchange/shardy.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const std::vector<std::string> kAsked = {
    "--gpus",         "8",  "--tp",     "4",
    "--global-batch", "16", "--splits", "column,row,head,vocab"};

Ran exported(const std::string &model, const std::string &notation,
             std::vector<std::string> more = {}) {
  more.insert(more.begin(), kAsked.begin(), kAsked.end());
  more.insert(more.end(), {"--export", notation});
  return runExample(model, more);
}

// Returns the rest of the line that starts with `name`.
std::string lineOf(const std::string &text, const std::string &name) {
  std::size_t at = text.find(name);
  EXPECT_NE(at, text.npos) << name;
  at += name.size();
  return text.substr(at, text.find('\n', at) - at);
}

planner::Mesh mesh() { return planner::meshOf(2, 4); }

// The report's layouts, written in each notation, are read back unchanged.
TEST(Shardings, AreThePlansLayouts) {
  std::vector<std::string> arguments = kAsked;
  arguments.emplace_back("--json");
  Json report = Json::parse(runExample("tiny-llama", arguments).out);
  std::map<std::string, std::pair<std::string, std::size_t>> layouts;
  for (const Json &one : report["plan"]["parameters"]) {
    std::string label = one["label"];
    if (std::size_t star = label.find('*'); star != label.npos)
      label.replace(star, 1, "0..1");
    layouts[label] = {one["layout"], one["local_shape"].size()};
  }
  std::string jax = exported("tiny-llama", "jax").out;
  std::string dtensor = exported("tiny-llama", "dtensor").out;
  std::string shardy = exported("tiny-llama", "shardy").out;
  EXPECT_THAT(
      jax, testing::StartsWith("mesh = jax.make_mesh((2, 4), ('dp', 'tp'))\n"));
  for (const auto &[label, layout] : layouts) {
    Errors errors;
    auto same = [&,
                 &wanted = layout](const std::optional<planner::Layout> &read,
                                   const std::string &text) {
      ASSERT_TRUE(read) << text;
      EXPECT_EQ(planner::toString(*read, mesh()), wanted.first) << text;
    };
    std::string spec = lineOf(jax, "'" + label + "': ");
    same(readPartitionSpec(spec.substr(0, spec.size() - 1), layout.second,
                           mesh(), errors),
         spec);
    std::string placements = lineOf(dtensor, "'" + label + "': ");
    same(readDTensor(placements.substr(0, placements.size() - 1), layout.second,
                     mesh(), errors),
         placements);
    std::string attribute = lineOf(shardy, "\n" + label + " ");
    auto read = readShardy(attribute, {"mesh", mesh()}, errors);
    ASSERT_TRUE(read) << attribute;
    same(read->layout, attribute);
    EXPECT_THAT(errors, testing::IsEmpty());
  }
}

// The weight of mlp.down is split by rows: its result is a partial sum over tp.
TEST(Shardings, MarkPartialValues) {
  Ran jax = exported("tiny-llama", "jax");
  EXPECT_THAT(jax.out, HasSubstr("'h.0..1.mlp.gate': P('dp', None, 'tp'),\n"));
  EXPECT_THAT(
      jax.out,
      HasSubstr("'h.0..1.mlp.down': P('dp', None, None, unreduced={'tp'}),\n"));
  Ran rules = exported("tiny-llama", "mesh-tensorflow");
  EXPECT_THAT(rules.out, testing::StartsWith("mesh_shape dp:2;tp:4\n"));
  EXPECT_THAT(rules.out, HasSubstr("h.0..1.mlp.gate batch:dp;column:tp\n"));
  EXPECT_THAT(rules.err,
              HasSubstr("note: h.0..1.mlp.down is left out: Mesh-TensorFlow "
                        "has no word for partial values\n"));
}

// The exported plan has the styles that Hugging Face's Llama configurations
// have, which are Megatron-LM's splits.
TEST(TpPlan, IsMegatronsSplit) {
  Ran plan = exported("tiny-llama", "hf-tp-plan");
  EXPECT_EQ(plan.code, kDone) << plan.err;
  Json read = Json::parse(plan.out)["base_model_tp_plan"];
  EXPECT_EQ(read["layers.*.self_attn.q_proj"], "colwise");
  EXPECT_EQ(read["layers.*.self_attn.o_proj"], "rowwise");
  EXPECT_EQ(read["layers.*.mlp.up_proj"], "colwise");
  EXPECT_EQ(read["layers.*.mlp.down_proj"], "rowwise");
}

TEST(Accelerate, HasTheDegrees) {
  Ran ran = exported("tiny-llama", "accelerate");
  EXPECT_THAT(ran.out, HasSubstr("num_processes: 8\n"));
  EXPECT_THAT(ran.out, HasSubstr("parallelism_config_tp_size: 4\n"));
}

// Every task of the simulated step occurs once, and the trace ends with the
// step.
TEST(Trace, IsTheWholeStep) {
  std::string path = testing::TempDir() + "mtplan_step.trace.json";
  std::vector<std::string> asked = {"--gpus",         "4",  "--tp",      "1",
                                    "--dp",           "2",  "--pp",      "2",
                                    "--micro-batch",  "1",  "--zero",    "1",
                                    "--global-batch", "16", "--overlap", "on",
                                    "--trace",        path, "--json"};
  Ran ran = runExample("gpt2-1.2b", asked);
  ASSERT_EQ(ran.code, kDone) << ran.err;
  double step = Json::parse(ran.out)["prediction"]["step_time_s"];
  std::ifstream file(path);
  Json events = Json::parse(file)["traceEvents"];
  std::map<std::string, int> tasks;
  double end = 0;
  std::set<int> stages;
  for (const Json &event : events) {
    if (event["ph"] != "X")
      continue;
    ++tasks[event["cat"]];
    stages.insert(event["pid"].get<int>());
    end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  // There are 8 micro-batches of two stages; embedding, layers and head are
  // separate segments.
  EXPECT_EQ(stages, (std::set<int>{0, 1}));
  EXPECT_EQ(tasks["send forward"], 8);
  EXPECT_EQ(tasks["send backward"], 8);
  EXPECT_EQ(tasks["update"], 2);
  EXPECT_GE(tasks["forward"], 16);
  EXPECT_NEAR(end, step * 1e6, 1e-6 * step * 1e6 + 1);
  Ran refused = runExample("gpt2-1.2b", {"--trace", "/no/such/folder/t.json"});
  EXPECT_EQ(refused.code, kBadInput);
}

// Messages between stages are in the report's collectives.
TEST(Sends, AreListed) {
  std::vector<std::string> asked = {
      "--gpus", "4", "--tp",          "1", "--dp",           "1",
      "--pp",   "4", "--micro-batch", "2", "--global-batch", "16"};
  asked.emplace_back("--explain");
  EXPECT_THAT(runExample("gpt2-1.2b", asked).out,
              HasSubstr("between stages  forward "));
  asked.back() = "--json";
  Json report = Json::parse(runExample("gpt2-1.2b", asked).out);
  int forward = 0, backward = 0;
  for (const Json &entry : report["collectives"]) {
    if (entry["kind"] != "send")
      continue;
    (entry["phase"] == "forward" ? forward : backward) += 1;
    EXPECT_EQ(entry["axis"], "pp");
    // A message has two samples of 1,024 positions of 1,536 16-bit numbers.
    EXPECT_EQ(entry["bytes"], 2 * 1024 * 1536 * 2);
    EXPECT_EQ(entry["count_per_step"], 8);
    EXPECT_GT(entry["time_s"], 0.0);
  }
  EXPECT_EQ(forward, 3);
  EXPECT_EQ(backward, 3);
}

} // namespace
} // namespace mtplan::tools
