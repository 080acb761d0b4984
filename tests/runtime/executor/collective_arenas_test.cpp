//===- collective_arenas_test.cpp - Arenas that collectives access --------===//

#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/executor/arena_memory.h"

namespace mtplan::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Arenas = std::set<int>;

enum Groups { kTensor, kTied, kAlone, kExpert, kUnused };

Tensor tensorIn(int buffer) {
  Tensor tensor;
  tensor.buffer = buffer;
  return tensor;
}

/// Returns a plan that has only groups. They are those of a first stage with
/// ranks 0 and 1, and a second stage with ranks 2 and 3.
Plan planOfTwoStages() {
  Plan plan;
  plan.ranks = 4;
  plan.groups = {{"tensor", {{0, 1}, {2, 3}}},
                 {"tied", {{0, 2}, {1, 3}}},
                 {"alone", {{0}, {1}, {2}, {3}}},
                 {"expert", {{0, 1}, {2, 3}}},
                 {"unused", {{0, 1}, {2, 3}}}};
  return plan;
}

class CollectiveArenas : public ::testing::Test {
protected:
  CollectiveArenas() {
    stage.ranks = {0, 1};
    stage.arenas.resize(3);
    stage.programs.resize(2);
    for (int arena : {2, 0, 1})
      stage.buffers.emplace_back().arena = arena;
  }

  void call(int program, CollectiveKind kind, Groups group, int from, int to) {
    Instruction instruction;
    instruction.what = Collective{kind, group};
    instruction.inputs = {tensorIn(from)};
    instruction.outputs = {tensorIn(to)};
    stage.programs[static_cast<std::size_t>(program)].instructions.push_back(
        instruction);
  }

  Stage stage;
};

TEST_F(CollectiveArenas, AreThoseOfOperandsAndResultsOfEveryProgram) {
  call(0, CollectiveKind::allGather, kTensor, 0, 1);
  call(1, CollectiveKind::allReduce, kExpert, 2, 2);
  call(1, CollectiveKind::reduceScatter, kExpert, 2, 0);
  Instruction kernel;
  kernel.what = KernelCall{"add", {}};
  kernel.inputs = {tensorIn(1)};
  stage.programs[1].instructions.push_back(kernel);
  EXPECT_THAT(
      collectiveArenas(planOfTwoStages(), stage),
      ElementsAre(Arenas{0, 2}, IsEmpty(), IsEmpty(), Arenas{1, 2}, IsEmpty()));
}

TEST_F(CollectiveArenas, SingleRanksAndOtherStagesUseNone) {
  call(0, CollectiveKind::allReduce, kTied, 0, 0);
  call(0, CollectiveKind::allReduce, kAlone, 1, 1);
  EXPECT_THAT(collectiveArenas(planOfTwoStages(), stage),
              ::testing::Each(IsEmpty()));
}

// An all-to-all rearranges its operand in memory of its own.
TEST_F(CollectiveArenas, AreNoneOfAnAllToAll) {
  call(0, CollectiveKind::allToAll, kExpert, 0, 1);
  EXPECT_THAT(collectiveArenas(planOfTwoStages(), stage),
              ::testing::Each(IsEmpty()));
}

} // namespace
} // namespace mtplan::runtime
