//===- collectives_test.cpp - Plans with a choice of collectives ----------===//

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/tools/command_testing.h"

namespace mtplan::tools {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

struct Planned {
  double step = 0.0;
  std::set<std::string> kinds; ///< kinds of collectives between operators
};

Planned planWith(const char *model, const std::string &collectives) {
  const Ran ran = runExample(
      model,
      {"--gpus", "4", "--tp", "4", "--micro-batch", "4", "--global-batch", "16",
       "--splits", "column,row,head,vocab,sequence,expert", "--memory-gib",
       "79", "--collectives", collectives, "--verify", "--json"});
  EXPECT_EQ(ran.code, kDone) << ran.err << ran.out;
  const Json report = Json::parse(ran.out);
  EXPECT_TRUE(report["proof"]["holds"]);
  Planned planned;
  planned.step = report["prediction"]["step_time_s"];
  for (const Json &entry : report["collectives"])
    if (entry["phase"] != "update")
      planned.kinds.insert(entry["kind"].get<std::string>());
  return planned;
}

// A plan uses only the allowed collectives and is proved. It is not faster than
// the plan without a restriction, and as fast if that plan uses no others.
TEST(Collectives, AreThoseThatAreAllowed) {
  int otherwise = 0;
  for (const char *model :
       {"tiny-gpt2", "tiny-llama", "tiny-bert", "tiny-gemma2", "tiny-mixtral"})
    for (const auto &[list, allowed] :
         {std::pair("all_reduce,all_gather,reduce_scatter",
                    std::set<std::string>{"all_reduce", "all_gather",
                                          "reduce_scatter"}),
          std::pair("all_reduce,all_gather",
                    std::set<std::string>{"all_reduce", "all_gather"}),
          std::pair("all_reduce", std::set<std::string>{"all_reduce"})}) {
      SCOPED_TRACE(std::string(model) + " with " + list);
      const Planned free = planWith(model, "any");
      const Planned planned = planWith(model, list);
      EXPECT_TRUE(std::ranges::includes(allowed, planned.kinds))
          << testing::PrintToString(planned.kinds);
      if (std::ranges::includes(allowed, free.kinds)) {
        EXPECT_EQ(planned.step, free.step);
        continue;
      }
      ++otherwise;
      EXPECT_GE(planned.step, free.step);
    }
  EXPECT_GT(otherwise, 5);
}

// Without all_to_all, a value changes its split by all_gather and slice.
TEST(Collectives, ReplaceAllToAll) {
  const std::vector<std::string> pins = {"--gpus",        "2",
                                         "--tp",          "2",
                                         "--micro-batch", "4",
                                         "--pin",         "h.*.attn.q=sequence",
                                         "--pin",         "h.*.attn.core=head"};
  auto kindsOf = [&](std::vector<std::string> more) {
    more.insert(more.end(), pins.begin(), pins.end());
    more.insert(more.end(), {"--json", "--verify"});
    const Ran ran = runExample("tiny-gpt2", more);
    EXPECT_EQ(ran.code, kDone) << ran.err << ran.out;
    const Json report = Json::parse(ran.out);
    std::set<std::string> kinds;
    for (const Json &entry : report["collectives"])
      if (entry["phase"] == "forward" &&
          entry["cause"].get<std::string>().find("attn.q") != std::string::npos)
        kinds.insert(entry["kind"].get<std::string>());
    return kinds;
  };
  EXPECT_EQ(kindsOf({}), std::set<std::string>{"all_to_all"});
  EXPECT_EQ(kindsOf({"--collectives", "all_gather,reduce_scatter,all_reduce"}),
            std::set<std::string>{"all_gather"});
}

TEST(Collectives, AreNamedIfNothingIsLegal) {
  const Ran ran =
      runExample("tiny-llama", {"--gpus", "2", "--cp", "2", "--tp", "1", "--dp",
                                "1", "--collectives", "all_reduce,all_to_all"});
  EXPECT_EQ(ran.code, kNothingFits);
  EXPECT_THAT(ran.out, HasSubstr(" and --collectives all_reduce,all_to_all"));
  EXPECT_THAT(runExample("tiny-llama", {"--collectives", "allreduce"}).err,
              HasSubstr("--collectives: unknown collective \"allreduce\"; "
                        "nearest first, known are all_reduce"));
}

} // namespace
} // namespace mtplan::tools
