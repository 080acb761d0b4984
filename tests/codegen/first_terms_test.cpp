//===- first_terms_test.cpp - Every sum of a compiled plan begins ---------===//
//
// That a sum is stored first and added to later is what the check of plans,
// which every compilation runs, looks for.
//
//===----------------------------------------------------------------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/plan_json.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

using runtime::Plan;

// The plans split sums over ranks, keep the state on the host and tie weights,
// each over several micro-batches.
TEST(FirstTerms, AreOfAllThatIsCompiled) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> compiled{
      {"tiny-gpt2", {"--gpus", "2", "--pp", "2"}},
      {"tiny-gpt2",
       {"--gpus", "2", "--zero", "1", "--offload", "optimizer", "--hardware",
        "dgx-1"}},
      {"tiny-llama", {"--gpus", "2", "--zero", "2", "--overlap", "on"}},
      {"tiny-llama", {"--gpus", "2", "--zero", "3"}},
      {"tiny-mixtral", {"--gpus", "2", "--ep", "2"}},
      {"tiny-t5", {"--gpus", "1"}}};
  for (const auto &[model, how] : compiled) {
    SCOPED_TRACE(model + ' ' + testing::PrintToString(how));
    const TestFolder folder;
    EXPECT_EQ(compileExample(model, folder / "run", how), "");
    const Plan plan = runtime::readPlanFile(folder / "run/plan.json");
    EXPECT_GT(plan.microBatches, 1);
  }
}

} // namespace
} // namespace mtplan
