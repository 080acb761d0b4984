//===- refusals_test.cpp - Plans that are written as no program
//-------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/source/cuda_source.h"
#include "runtime/plan/plan_json.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using namespace runtime;
using testing::HasSubstr;

// Also where one launch would do for all of them, which has the first stream.
TEST(Source, HasKernelsOnTheFirstStreamOnly) {
  const TestFolder folder;
  ASSERT_EQ(
      compileExample("tiny-gpt2", folder / "run", {"--gpus", "2", "--dp", "2"}),
      "");
  Plan plan = readPlanFile(folder / "run/plan.json");
  EXPECT_NO_THROW(codegen::cudaProgram(plan));
  ASSERT_GE(plan.streams.size(), 2);
  Stage &stage = plan.stages.front();
  const int updates = stage.apply[1].program;
  for (Instruction &one :
       stage.programs[static_cast<std::size_t>(updates)].instructions)
    one.stream = 1;
  try {
    codegen::cudaProgram(plan);
    FAIL() << "was written";
  } catch (const codegen::SourceError &error) {
    EXPECT_THAT(error.what(), HasSubstr("is a kernel on stream data"));
  }
}

} // namespace
} // namespace mtplan
