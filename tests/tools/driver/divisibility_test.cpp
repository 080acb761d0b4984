//===- divisibility_test.cpp - Divisibility rules -------------------------===//
//
// Trainers enforce these rules (Megatron-LM's arguments, torchtitan's parallel
// dimensions). A plan obeys each rule, or the request is rejected with numbers
// that fit.
//
//===----------------------------------------------------------------------===//

#include <fstream>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

struct Rule {
  const char *name, *model;
  std::vector<std::string> breaking;
  const char *error;
  std::vector<std::string> neighbour; ///< suggested flags, which give a plan
};
void PrintTo(const Rule &rule, std::ostream *out) { *out << rule.name; }

class Rules : public testing::TestWithParam<Rule> {};

TEST_P(Rules, RejectWithNumbersThatFit) {
  const Rule &rule = GetParam();
  Ran refused = runExample(rule.model, rule.breaking);
  EXPECT_EQ(refused.code, kBadInput);
  EXPECT_THAT(refused.err, HasSubstr(rule.error));
  Ran kept = runExample(rule.model, rule.neighbour);
  EXPECT_EQ(kept.code, kDone) << kept.err << kept.out;
}

INSTANTIATE_TEST_SUITE_P(
    All, Rules,
    testing::Values(
        Rule{"WorldByDegrees",
             "tiny-gpt2",
             {"--gpus", "8", "--tp", "2", "--pp", "3"},
             "pp 3 does not divide the 8 GPUs; nearest that do: 2 and 4",
             {"--gpus", "8", "--tp", "2", "--pp", "2"}},
        Rule{"WorldByTheirProduct",
             "tiny-gpt2",
             {"--gpus", "8", "--tp", "4", "--pp", "2", "--cp", "2"},
             "tp 4 times pp 2 times cp 2 is 16, which does not divide the 8 "
             "GPUs",
             {"--gpus", "8", "--tp", "4", "--pp", "1", "--cp", "2"}},
        Rule{"HeadsByTp",
             "qwen2-7b",
             {"--gpus", "8", "--tp", "8"},
             "28 heads do not divide by tp 8; tp may be 1 2 4 7 14 28",
             {"--gpus", "8", "--tp", "4"}},
        Rule{"KeyValueHeadsByTp",
             "qwen2-7b",
             {"--gpus", "28", "--tp", "28", "--dp", "1"},
             "4 key/value heads do not divide by tp 28; tp may be 1 2 4",
             {"--gpus", "8", "--tp", "4"}},
        Rule{"SequenceByContext",
             "tiny-gpt2",
             {"--gpus", "8", "--cp", "4", "--seq", "20"},
             "sequence 20 does not divide by twice cp 4; nearest that do: 16 "
             "and 24",
             {"--gpus", "8", "--cp", "4", "--seq", "24"}},
        Rule{"LayersByStages",
             "tiny-gpt2",
             {"--gpus", "4", "--pp", "4"},
             "2 layers do not fill pp 4; at most 2 stages have one each",
             {"--gpus", "4", "--pp", "2"}},
        Rule{"LayersByVirtualStages",
             "gpt2-1.2b",
             {"--gpus", "4", "--pp", "4", "--vp", "3", "--micro-batch", "1"},
             "40 layers do not divide by pp 4 times vp 3, which is 12, nor "
             "with one less in the first or last chunk; vp may be 2 5 10, or "
             "any with --stage-layers",
             {"--gpus", "4", "--pp", "4", "--vp", "5", "--micro-batch", "1"}},
        Rule{"VirtualStagesNeedAPipeline",
             "gpt2-1.2b",
             {"--gpus", "4", "--pp", "1", "--vp", "2"},
             "the interleaved schedule needs pp above 1",
             {"--gpus", "4", "--pp", "2", "--vp", "2", "--micro-batch", "1"}},
        Rule{"VirtualStagesNeedTheSchedule",
             "gpt2-1.2b",
             {"--gpus", "4", "--pp", "2", "--vp", "2", "--schedule", "1f1b"},
             "vp 2 needs the interleaved schedule, not 1f1b",
             {"--gpus", "4", "--pp", "2", "--vp", "2", "--schedule",
              "interleaved", "--micro-batch", "1"}},
        Rule{"RoundsOfMicroBatches",
             "gpt2-1.2b",
             {"--gpus", "4", "--pp", "4", "--tp", "1", "--dp", "1", "--vp", "2",
              "--micro-batch", "1", "--global-batch", "10"},
             "10 micro-batches do not divide by pp 4, as the interleaved "
             "schedule needs; nearest that do: 8 and 12",
             {"--gpus", "4", "--pp", "4", "--tp", "1", "--dp", "1", "--vp", "2",
              "--micro-batch", "1", "--global-batch", "12"}},
        Rule{"GlobalBatchByReplicas",
             "tiny-gpt2",
             {"--gpus", "8", "--dp", "8", "--global-batch", "20"},
             "global batch 20 does not divide by dp 8; nearest that do: 16 "
             "and 24",
             {"--gpus", "8", "--dp", "8", "--global-batch", "24"}},
        Rule{"GlobalBatchByMicroBatch",
             "tiny-gpt2",
             {"--gpus", "8", "--dp", "8", "--global-batch", "48",
              "--micro-batch", "4"},
             "micro-batch 4 does not divide the 6 samples of a replica (global "
             "batch 48 over dp 8); nearest that do: 3 and 6",
             {"--gpus", "8", "--dp", "8", "--global-batch", "48",
              "--micro-batch", "3"}},
        Rule{"StageLayersAddUp",
             "gpt2-1.2b",
             {"--gpus", "4", "--pp", "2", "--stage-layers", "11,13"},
             "the parts of the pipeline hold 24 layers, the model 40",
             {"--gpus", "4", "--pp", "2", "--stage-layers", "11,29"}},
        Rule{"StageLayersFitTheStages",
             "gpt2-1.2b",
             {"--gpus", "4", "--pp", "4", "--stage-layers", "20,20"},
             "layers are given for 2 parts, pp 4 has 4",
             {"--gpus", "4", "--pp", "2", "--stage-layers", "20,20"}},
        Rule{"UnevenCutsOfAPipeline",
             "tiny-gpt2",
             {"--gpus", "4", "--layers", "5", "--stage-layers", "any"},
             "stage-layers any cuts a pipeline unevenly, and pp 1 has nothing "
             "to cut; with --pp any, or above 1, it has",
             {"--gpus", "4", "--layers", "5", "--stage-layers", "any", "--pp",
              "any"}},
        Rule{"UnevenCutsOfOnePartEach",
             "tiny-gpt2",
             {"--gpus", "4", "--layers", "8", "--stage-layers", "any", "--pp",
              "2", "--vp", "2,4", "--micro-batch", "1"},
             "stage-layers any cuts stages of one part each unevenly, and vp 2 "
             "or 4 has more; with vp 1 or any there are such cuts, or "
             "--stage-layers gives the layers of each part",
             {"--gpus", "4", "--layers", "8", "--stage-layers", "1,2,3,2",
              "--pp", "2", "--vp", "2", "--micro-batch", "1"}},
        Rule{"UnevenCutsAreNotInterleaved",
             "tiny-gpt2",
             {"--gpus", "4", "--layers", "8", "--stage-layers", "any", "--pp",
              "any", "--schedule", "interleaved"},
             "stage-layers any cuts stages of one part each unevenly, and the "
             "interleaved schedule has more; with 1f1b, or any, there are such "
             "cuts, or --stage-layers gives the layers of each part",
             {"--gpus", "4", "--layers", "8", "--stage-layers", "any", "--pp",
              "any", "--schedule", "any"}},
        Rule{"ZeroRanksByReplicas",
             "tiny-gpt2",
             {"--gpus", "8", "--dp", "8", "--zero", "1", "--zero-ranks", "3"},
             "zero-ranks 3 does not divide dp 8; nearest allowed: 2 and 4",
             {"--gpus", "8", "--dp", "8", "--zero", "1", "--zero-ranks", "4"}},
        Rule{
            "ZeroRanksOfAllReplicas",
            "tiny-gpt2",
            {"--gpus", "8", "--dp", "4", "--zero", "any", "--zero-ranks", "8"},
            "zero-ranks 8 is more than the number of replicas, dp 4; nearest "
            "allowed: 4",
            {"--gpus", "8", "--dp", "4", "--zero", "any", "--zero-ranks", "4"}},
        Rule{
            "ZeroRanksThatSplitNothing",
            "tiny-gpt2",
            {"--gpus", "8", "--dp", "8", "--zero", "2", "--zero-ranks", "1"},
            "zero-ranks 1 shards nothing over the dp 8 replicas, which is zero "
            "0; nearest allowed: 2",
            {"--gpus", "8", "--dp", "8", "--zero", "2", "--zero-ranks", "2"}},
        Rule{"ZeroRanksByGpus",
             "tiny-gpt2",
             {"--gpus", "8", "--zero", "1", "--zero-ranks", "3,5"},
             "zero-ranks 3 or 5 does not divide the 8 GPUs; nearest that do: "
             "2, 4 and 8",
             {"--gpus", "8", "--zero", "1", "--zero-ranks", "3,8"}},
        Rule{"ZeroRanksWithoutZero",
             "tiny-gpt2",
             {"--gpus", "8", "--zero-ranks", "4"},
             "zero-ranks 4 need ZeRO, but its stage is 0; use --zero 1, 2 or "
             "3, or --zero-ranks 1",
             {"--gpus", "8", "--zero-ranks", "4", "--zero", "2"}},
        Rule{
            "ZeroRanksByExpertRanks",
            "tiny-mixtral",
            {"--gpus", "8", "--dp", "8", "--ep", "4", "--zero", "1",
             "--zero-ranks", "4"},
            "zero-ranks 4 must be more than ep 4 and a multiple of it; nearest "
            "allowed: 8",
            {"--gpus", "8", "--dp", "8", "--ep", "4", "--zero", "1",
             "--zero-ranks", "8"}},
        Rule{
            "ExpertRanksByExperts",
            "tiny-mixtral",
            {"--gpus", "12", "--dp", "12", "--ep", "3", "--global-batch", "24"},
            "8 experts are not divisible by ep 3; nearest that divide both: 2 "
            "and 4",
            {"--gpus", "12", "--dp", "12", "--ep", "2", "--global-batch",
             "24"}},
        Rule{"ExpertRanksByReplicas",
             "tiny-mixtral",
             {"--gpus", "8", "--dp", "2", "--ep", "4,8"},
             "dp 2 is not divisible by ep 4, dp 2 is not divisible by ep 8; "
             "nearest that divide both: 2",
             {"--gpus", "8", "--dp", "2", "--ep", "2"}},
        Rule{"ExpertRanksByGpus",
             "tiny-mixtral",
             {"--gpus", "8", "--ep", "3"},
             "8 experts and the 8 GPUs are not divisible by ep 3; nearest that "
             "divide both: 2 and 4",
             {"--gpus", "8", "--ep", "4"}},
        Rule{"ExpertRanksNeedExperts",
             "tiny-gpt2",
             {"--gpus", "8", "--ep", "2,4"},
             "the model has no experts to distribute over ep 2 or 4; ep must "
             "be 1",
             {"--gpus", "8", "--ep", "1"}}),
    [](const testing::TestParamInfo<Rule> &one) { return one.param.name; });

// The first and the last stage get fewer layers, because they also have the
// embedding or the head.
TEST(Layers, AreCutUnevenlyWhereTheyDoNotDivide) {
  Json plan = Json::parse(
      runExample("gpt2-1.2b", {"--gpus", "3", "--tp", "1", "--dp", "1", "--pp",
                               "3", "--micro-batch", "1", "--json"})
          .out)["plan"];
  EXPECT_EQ(plan["layers"], Json({13, 14, 13}));
}

// The first or the last virtual stage may have one layer less than the others,
// because it also has the embedding or the head. The search cuts the layers in
// the same way whether the number of virtual stages is open or fixed.
TEST(Layers, InterleavedEndsMayHaveOneLess) {
  auto planWith = [](const char *vp) {
    return runExample(
        "tiny-gpt2", {"--gpus", "4", "--tp", "1", "--pp", "4", "--layers", "31",
                      "--schedule", "interleaved", "--vp", vp, "--micro-batch",
                      "1", "--global-batch", "8", "--top", "100", "--json"});
  };
  Json open = Json::parse(planWith("any").out);
  std::map<int, Json> layers{
      {open["plan"]["virtual_stages"], open["plan"]["layers"]}};
  for (const Json &other : open["alternatives"])
    layers[other["virtual_stages"]] = other["layers"];
  EXPECT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[2], Json({3, 4, 4, 4, 4, 4, 4, 4}));
  for (const auto &[vp, parts] : layers) {
    Ran alone = planWith(std::to_string(vp).c_str());
    ASSERT_EQ(alone.code, kDone) << alone.err;
    EXPECT_EQ(Json::parse(alone.out)["plan"]["layers"], parts);
  }
  EXPECT_THAT(planWith("5").err,
              HasSubstr("31 layers do not divide by pp 4 times vp 5, which is "
                        "20, nor with one less in the first or last chunk; vp "
                        "may be 2 4, or any with --stage-layers"));
}

// A model is rejected if the number of heads does not divide the hidden size.
// The error names the key n_head.
TEST(Layers, HeadsDivideTheHiddenSize) {
  std::ifstream file(examplePath("tiny-gpt2"));
  Json model = Json::parse(file);
  model["n_head"] = 7;
  std::string path = testing::TempDir() + "mtplan_heads.json";
  std::ofstream(path) << model;
  Ran ran({path});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, HasSubstr("n_head"));
}

// For random numbers of layers, stages and virtual stages, each layer is in one
// stage, or the request is rejected and the suggested numbers give a plan.
TEST(Layers, AreNeverLost) {
  std::mt19937_64 random(17);
  auto draw = [&](int most) {
    return std::uniform_int_distribution<int>(1, most)(random);
  };
  int plans = 0, refusals = 0;
  for (int round = 0; round < 120; ++round) {
    int layers = draw(40), pp = draw(8), vp = draw(5);
    std::vector<std::string> asked = {"--layers",       std::to_string(layers),
                                      "--gpus",         std::to_string(pp),
                                      "--tp",           "1",
                                      "--dp",           "1",
                                      "--pp",           std::to_string(pp),
                                      "--micro-batch",  "1",
                                      "--global-batch", std::to_string(4 * pp),
                                      "--top",          "1",
                                      "--json"};
    if (vp > 1)
      asked.insert(asked.end(), {"--vp", std::to_string(vp)});
    SCOPED_TRACE(testing::PrintToString(asked));
    Ran ran = runExample("tiny-gpt2", asked);
    if (ran.code == kDone) {
      ++plans;
      Json plan = Json::parse(ran.out)["plan"];
      EXPECT_EQ(plan["layers"].size(), static_cast<std::size_t>(pp * vp));
      int sum = 0;
      for (int part : plan["layers"]) {
        EXPECT_GE(part, 1);
        sum += part;
      }
      EXPECT_EQ(sum, layers);
      // Each layer's operators occur once.
      std::vector<int> seen(static_cast<std::size_t>(layers), 0);
      for (const Json &op : plan["ops"])
        if (op["label"] == "h.*.mlp.fc1")
          for (int i = 0; i < op["copies"].get<int>(); ++i)
            ++seen[op["first"].get<std::size_t>() +
                   static_cast<std::size_t>(i)];
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
      continue;
    }
    ++refusals;
    ASSERT_EQ(ran.code, kBadInput) << ran.out;
    std::size_t named = ran.err.find("vp may be ");
    if (named == ran.err.npos || ran.err.substr(named + 10, 4) == "none" ||
        layers < pp)
      continue;
    asked.back() = std::to_string(std::stoi(ran.err.substr(named + 10)));
    EXPECT_EQ(runExample("tiny-gpt2", asked).code, kDone) << ran.err;
  }
  EXPECT_GT(plans, 20);
  EXPECT_GT(refusals, 20);
}

} // namespace
} // namespace mtplan::tools
