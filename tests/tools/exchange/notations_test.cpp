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

// Returns whether the weight is that of a torch.nn.Linear, which is [out, in].
bool isOfLinear(const std::string &label) {
  return label.find(".attn.") != label.npos ||
         label.find(".mlp.") != label.npos || label == "lm_head.weight";
}

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
  EXPECT_THAT(jax, testing::StartsWith(
                       "import jax\n"
                       "from jax.sharding import AxisType, PartitionSpec as P\n"
                       "\n"
                       "mesh = jax.make_mesh((2, 4), ('dp', 'tp'),\n"
                       "                     axis_types=(AxisType.Auto, "
                       "AxisType.Auto))\n"));
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
    auto placed = readDTensor(placements.substr(0, placements.size() - 1),
                              layout.second, mesh(), errors);
    ASSERT_TRUE(placed) << placements;
    if (isOfLinear(label))
      std::swap(placed->dims[0], placed->dims[1]);
    same(placed, placements);
    std::string attribute = lineOf(shardy, "\n" + label + " ");
    auto read = readShardy(attribute, {"mesh", mesh()}, errors);
    ASSERT_TRUE(read) << attribute;
    same(read->layout, attribute);
    EXPECT_THAT(errors, testing::IsEmpty());
  }
}

// A column split of torch.nn.Linear's [out, in] is a split of dimension 0.
TEST(Shardings, OfDTensorAreThoseOfLinear) {
  const std::string text = exported("tiny-llama", "dtensor").out;
  for (const char *line :
       {"'h.0..1.mlp.up.weight': (Replicate(), Shard(dim=0)),\n",
        "'h.0..1.mlp.down.weight': (Replicate(), Shard(dim=1)),\n",
        "'lm_head.weight': (Replicate(), Shard(dim=0)),\n",
        "'h.0..1.mlp.up.weight': (192, 64),\n",
        "'h.0..1.mlp.down.weight': (64, 192),\n",
        "'h.0..1.mlp.up': (Shard(dim=0), Shard(dim=2)),\n"})
    EXPECT_THAT(text, HasSubstr(line));
  // The head of GPT-2 is the table [vocabulary, hidden], which is [out, in].
  EXPECT_THAT(exported("tiny-gpt2", "dtensor",
                       {"--pin", "wte=vocab", "--pin", "lm_head=vocab"})
                  .out,
              HasSubstr("'wte.weight': (Replicate(), Shard(dim=0)),\n"));
}

TEST(Shardings, HaveThePaddedShapes) {
  for (const char *notation : {"jax", "dtensor"}) {
    const std::string text = exported("tiny-llama", notation).out;
    EXPECT_THAT(text, HasSubstr("shapes = {\n    'wte.weight': (512, 64),  # "
                                "with 12 of padding\n"
                                "    'h.0..1.ln_1.weight': (64,),\n"));
    EXPECT_THAT(text, HasSubstr(notation == std::string("jax")
                                    ? "'lm_head.weight': (64, 512),  # with 12 "
                                      "of padding\n"
                                    : "'lm_head.weight': (512, 64),  # with 12 "
                                      "of padding\n"));
  }
}

// The weight of mlp.down is split by rows, so the result of mlp.down is a
// partial sum over tp, which a mesh of Auto axes rejects.
TEST(Shardings, MarkPartialValues) {
  Ran jax = exported("tiny-llama", "jax");
  EXPECT_THAT(jax.out,
              HasSubstr("\n    'h.0..1.mlp.gate': P('dp', None, 'tp'),\n"));
  EXPECT_THAT(jax.out, HasSubstr("\n    # 'h.0..1.mlp.down': P('dp', None, "
                                 "None, unreduced={'tp'}),\n"));
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
  Json config = Json::parse(plan.out);
  EXPECT_EQ(config["tp_size"], 4);
  Json read = config["tp_plan"];
  EXPECT_EQ(read.size(), 9);
  EXPECT_EQ(read["model.layers.*.self_attn.q_proj"], "colwise");
  EXPECT_EQ(read["model.layers.*.self_attn.o_proj"], "rowwise");
  EXPECT_EQ(read["model.layers.*.mlp.up_proj"], "colwise");
  EXPECT_EQ(read["model.layers.*.mlp.down_proj"], "rowwise");
  EXPECT_EQ(read["model.embed_tokens"], "replicate");
  EXPECT_EQ(read["lm_head"], "colwise_gather_output");
  EXPECT_THAT(plan.err, HasSubstr("the text says how tp 4 splits the weights; "
                                  "set the rest of dp 2 x tp 4 elsewhere"));
}

// A module that the plan replicates is named, because transformers would split
// it by its own rule.
TEST(TpPlan, NamesReplicatedModules) {
  Ran plan =
      exported("tiny-llama", "hf-tp-plan",
               {"--pin", "wte=replicated", "--pin", "h.*.mlp.*=replicated"});
  ASSERT_EQ(plan.code, kDone) << plan.err;
  Json read = Json::parse(plan.out)["tp_plan"];
  EXPECT_EQ(read["model.embed_tokens"], "replicate");
  EXPECT_EQ(read["model.layers.*.mlp.gate_proj"], "replicate");
  EXPECT_EQ(read["model.layers.*.self_attn.q_proj"], "colwise");
}

// The tied table is also the head, which transformers would split by its own
// rule.
TEST(TpPlan, NamesATiedHead) {
  Ran plan = runExample("llama-3.2-1b",
                        {"--gpus", "4", "--tp", "4", "--micro-batch", "1",
                         "--global-batch", "4", "--splits",
                         "column,row,head,vocab", "--export", "hf-tp-plan"});
  ASSERT_EQ(plan.code, kDone) << plan.err;
  Json read = Json::parse(plan.out)["tp_plan"];
  EXPECT_EQ(read["model.embed_tokens"], "embedding_rowwise");
  EXPECT_EQ(read["lm_head"], "colwise_gather_output");
}

TEST(TpPlan, RefusesWhatTransformersWouldRunOtherwise) {
  Ran layers = exported("tiny-llama", "hf-tp-plan",
                        {"--pin", "h.1.mlp.gate=replicated"});
  EXPECT_EQ(layers.code, kBadInput);
  EXPECT_EQ(layers.out, "");
  EXPECT_THAT(layers.err,
              HasSubstr("error: --export hf-tp-plan: h.0.mlp.gate.weight is "
                        "colwise but h.1.mlp.gate.weight is replicate; "));
  Ran sequence = runExample(
      "tiny-llama", {"--gpus", "8", "--tp", "4", "--global-batch", "16",
                     "--pin", "h.*.ln_1=sequence", "--export", "hf-tp-plan"});
  EXPECT_EQ(sequence.code, kBadInput);
  EXPECT_THAT(sequence.err,
              HasSubstr("error: --export hf-tp-plan: transformers' tensor "
                        "ranks hold all positions, but the plan's 4 split the "
                        "sequence; nearest: --sequence-parallel off\n"));
  EXPECT_THAT(exported("tiny-gpt2", "hf-tp-plan").err,
              HasSubstr("transformers cannot run gpt2 on tensor ranks: "));
}

TEST(Accelerate, HasTheDegrees) {
  Ran ran = exported("tiny-llama", "accelerate", {"--zero", "3"});
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
