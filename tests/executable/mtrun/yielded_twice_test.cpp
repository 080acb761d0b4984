//===- yielded_twice_test.cpp - A segment that yields a value twice -------===//

#include <fstream>

#include <gtest/gtest.h>

#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Trains three steps and returns loss and gradient norm of each.
std::vector<std::string> numbersOf(const std::string &model,
                                   const std::string &plan,
                                   std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--precision", "fp32"});
  EXPECT_EQ(compileExample(model, plan, flags), "");
  const Ran ran = runHere({plan, "--data", "synthetic", "--steps", "3",
                           "--metrics", plan + ".jsonl"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  std::vector<std::string> numbers;
  std::ifstream log(plan + ".jsonl");
  for (std::string line; std::getline(log, line);)
    numbers.push_back(line.substr(0, line.find(", \"learning_rate\"")));
  return numbers;
}

// Backward sums the gradients of both uses: the loss and the norm are those of
// a model that yields the value once and adds it to itself.
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
      numbersOf(folder / "once.json", folder / "once", {"--gpus", "1"});
  ASSERT_EQ(expected.size(), 3U);
  EXPECT_EQ(numbersOf(folder / "twice.json", folder / "one", {"--gpus", "1"}),
            expected);
  EXPECT_EQ(numbersOf(folder / "twice.json", folder / "stages",
                      {"--gpus", "2", "--pp", "2"}),
            expected);
}

} // namespace
} // namespace mtplan
