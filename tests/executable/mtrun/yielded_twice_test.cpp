//===- yielded_twice_test.cpp - A segment that yields a value twice -------===//

#include <fstream>

#include <gtest/gtest.h>

#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

// Trains three steps and returns the metrics of each, without times.
std::vector<std::string> trained(const std::string &model,
                                 const std::string &plan,
                                 std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--precision", "fp32"});
  EXPECT_EQ(compileExample(model, plan, flags), "");
  const Ran ran = runHere({plan, "--data", "synthetic", "--steps", "3",
                           "--metrics", plan + ".jsonl"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return numbersOf(plan + ".jsonl");
}

// A segment that yields a value twice sums the gradients of both uses. The loss
// and the gradient norm equal those of a model that yields the value once and
// adds it to itself.
TEST(YieldedTwice, TrainsLikeOnceOnOneRankAndOnSeveral) {
  const TestFolder folder;
  std::string twice = contentOf(tools::examplePath("native/mlp"));
  twice =
      replaced(twice, R"("yields": ["act"])", R"("yields": ["act", "act"])");
  twice = replaced(twice, R"("inputs": ["act", "fc2.weight"])",
                   R"("inputs": ["sum", "fc2.weight"])");
  std::string once = twice;
  const std::string takes = R"("takes": ["act"],
      "operators": [)";
  const auto sum = [](const std::string &other) {
    return R"({"op": "add", "name": "sum", "inputs": ["act", ")" + other +
           "\"]},";
  };
  twice = replaced(twice, takes,
                   R"("takes": ["act", "twin"], "operators": [)" + sum("twin"));
  once = replaced(once, R"(["act", "act"])", R"(["act"])");
  once = replaced(once, takes, takes + sum("act"));
  std::ofstream(folder / "twice.json") << twice;
  std::ofstream(folder / "once.json") << once;

  const std::vector<std::string> expected =
      trained(folder / "once.json", folder / "once", {"--gpus", "1"});
  ASSERT_EQ(expected.size(), 3U);
  EXPECT_EQ(trained(folder / "twice.json", folder / "one", {"--gpus", "1"}),
            expected);
  EXPECT_EQ(trained(folder / "twice.json", folder / "stages",
                    {"--gpus", "2", "--pp", "2"}),
            expected);
}

} // namespace
} // namespace mtplan
