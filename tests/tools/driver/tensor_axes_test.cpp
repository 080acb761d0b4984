//===- tensor_axes_test.cpp - Plans with two tensor axes ------------------===//

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// Runs mtplan with the default splits, of which two axes use all but sequence.
Ran run(const std::string &model, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), examplePath(model));
  arguments.insert(arguments.end(), {"--open", "none", "--tolerance", "0"});
  return Ran(arguments);
}

Json reportOf(const std::string &model, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  Ran ran = run(model, arguments);
  EXPECT_EQ(ran.code, kDone) << ran.err;
  return ran.code == kDone ? Json::parse(ran.out) : Json();
}

double stepOf(const Json &report) {
  return report.at("prediction").at("step_time_s").get<double>();
}

Json operatorOf(const Json &report, const std::string &label) {
  for (const Json &one : report.at("plan").at("ops"))
    if (one.at("label") == label)
      return one;
  ADD_FAILURE() << "no operator " << label;
  return {};
}

// GPT-2 2.5B has 20 heads: 4 ranks of one axis divide them, 8 ranks do not.
TEST(TensorAxes, AnAxisMayLeaveHeadsWhole) {
  const std::vector<std::string> eight{"--gpus", "8", "--tp", "8"};
  EXPECT_THAT(run("gpt2-2.5b", eight).err,
              HasSubstr("20 heads do not divide by tp 8"));
  std::vector<std::string> two = eight;
  two.insert(two.end(), {"--tp-axes", "2"});
  const Json plan = reportOf("gpt2-2.5b", two).at("plan");
  EXPECT_EQ(plan.at("tp"), 8);
  EXPECT_EQ(plan.at("tp2"), 2);
}

TEST(TensorAxes, OneAxisIsAmongThePlansOfTwo) {
  const std::vector<std::string> flags{
      "--gpus", "4", "--tp", "4", "--splits", "column,row,head,vocab"};
  std::vector<std::string> open = flags;
  open.insert(open.end(), {"--tp-axes", "2"});
  const Json one = reportOf("llama-3-8b", flags);
  const Json two = reportOf("llama-3-8b", open);
  EXPECT_FALSE(one.at("plan").contains("tp2"));
  EXPECT_LE(stepOf(two), stepOf(one));
  EXPECT_TRUE(two.at("search").at("optimal").get<bool>());
}

TEST(TensorAxes, PinsNameTheSplitOfEachAxis) {
  const std::vector<std::string> flags{
      "--gpus",    "8",
      "--tp-axes", "4,2",
      "--pin",     "h.*.mlp.fc1=column+replicated",
      "--pin",     "h.*.attn.proj=row",
      "--pin",     "h.*.mlp.fc1.weight=[-,tp]"};
  const Json report = reportOf("gpt2-1.2b", flags);
  EXPECT_EQ(operatorOf(report, "h.*.mlp.fc1").at("strategy"),
            "column + replicated");
  EXPECT_EQ(operatorOf(report, "h.*.attn.proj").at("strategy"), "row");
  for (const Json &one : report.at("plan").at("parameters"))
    if (one.at("label") == "h.*.mlp.fc1.weight") {
      EXPECT_EQ(one.at("layout"), "[-, tp]");
    }
}

// The constraints fix the sizes of the axes, and every split.
TEST(TensorAxes, ConstraintsFindThePlanAgain) {
  const std::vector<std::string> flags{"--gpus", "8", "--tp-axes", "4,2"};
  std::vector<std::string> writing = flags;
  writing.insert(writing.end(), {"--export", "constraints"});
  const std::string path = testing::TempDir() + "mtplan_two_axes.json";
  std::ofstream(path) << run("gpt2-1.2b", writing).out;
  Ran ran({examplePath("gpt2-1.2b"), "--constraints", path, "--json"});
  ASSERT_EQ(ran.code, kDone) << ran.err;
  const Json again = Json::parse(ran.out);
  const Json before = reportOf("gpt2-1.2b", flags);
  EXPECT_EQ(again.at("plan").at("ops"), before.at("plan").at("ops"));
  EXPECT_EQ(stepOf(again), stepOf(before));
}

// A configuration with one axis cannot store a weight split over the second.
TEST(TensorAxes, PinsOfTheSecondAxisRuleOutOneAxis) {
  const Json report =
      reportOf("tiny-gpt2", {"--gpus", "4", "--tp", "4", "--tp-axes", "2",
                             "--pin", "wte.weight=[tp2,-]"});
  EXPECT_EQ(report.at("plan").at("tp2"), 2);
}

// A loaded plan has the splits with which it was searched.
TEST(TensorAxes, SavedPlansPrintTheSameAgain) {
  const std::string path = testing::TempDir() + "mtplan_two_axes_saved.json";
  Ran before = run("gpt2-2.5b", {"--gpus", "8", "--tp", "8", "--tp-axes", "2",
                                 "--save", path});
  ASSERT_EQ(before.code, kDone) << before.err;
  Ran after({"--load", path});
  EXPECT_EQ(after.code, kDone) << after.err;
  EXPECT_EQ(after.out, before.out);
}

TEST(TensorAxes, TrainersWithOneAxisAreRefused) {
  for (const char *trainer :
       {"megatron", "deepspeed", "torchtitan", "hf-tp-plan"}) {
    Ran ran = run("tiny-llama",
                  {"--gpus", "4", "--tp-axes", "2,2", "--export", trainer});
    EXPECT_EQ(ran.code, kBadInput) << trainer;
    EXPECT_THAT(ran.err,
                HasSubstr("has one tensor axis, but the plan has two of 2 and "
                          "2 ranks; nearest: --tp-axes 1"))
        << trainer;
  }
}

TEST(TensorAxes, FaultsNameWhatWouldDo) {
  for (const char *axes : {"0", "3", "8,1", "2,2,2", "any"})
    EXPECT_THAT(run("tiny-gpt2", {"--tp-axes", axes}).err,
                HasSubstr("--tp-axes: "))
        << axes;
  EXPECT_EQ(
      run("tiny-gpt2", {"--gpus", "8", "--tp", "8", "--tp-axes", "2,2"}).err,
      "error: --tp-axes 2,2: 4 tensor ranks, but --tp is 8\n");
  EXPECT_EQ(
      run("tiny-gpt2", {"--gpus", "8", "--tp-axes", "1048576,1048576"}).err,
      "error: --tp-axes 1048576,1048576: 1099511627776 tensor ranks, but "
      "there are 8 GPUs\n");
  EXPECT_THAT(run("tiny-gpt2",
                  {"--gpus", "8", "--tp-axes", "2,2", "--import", "x.args"})
                  .err,
              HasSubstr("--tp-axes"));
  EXPECT_THAT(run("tiny-gpt2", {"--gpus", "6", "--tp-axes", "2,2"}).err,
              HasSubstr("tp 4 does not divide the 6 GPUs"));
}

} // namespace
} // namespace mtplan::tools
