//===- joint_collectives_test.cpp - Collectives that may be one -----------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/joint_collectives.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre, testing::IsEmpty;

/// A stage of one program, of collectives that take two elements of an arena
/// and give two.
struct Calls {
  Calls() {
    stage.arenas = {{MemoryClass::gradients, 4096}};
    stage.programs = {{"update", {}}};
    stage.reduce = {{.program = 0}};
    stage.ranks = {0, 1};
    plan.groups = {{"dp", {{0, 1}, {2, 3}}}, {"tp", {{0, 1}, {2, 3}}}};
  }
  /// An element on by copy and by micro-batch, so many of them.
  Tensor at(int element, int copies = 1, int slots = 1) {
    Buffer buffer{"x", 0, element * kElement, 2 * kElement};
    buffer.entries = copies;
    buffer.entryStride = 2 * kElement;
    buffer.slots = slots;
    buffer.slotStride = 2 * kElement;
    stage.buffers.push_back(buffer);
    Tensor tensor;
    tensor.buffer = static_cast<int>(stage.buffers.size()) - 1;
    tensor.entryStep = copies > 1 ? 1 : 0;
    tensor.shape = {2};
    return tensor;
  }
  Calls &add(const Tensor &from, const Tensor &to,
             CollectiveKind kind = CollectiveKind::allGather) {
    Instruction instruction;
    instruction.what = Collective{kind};
    instruction.inputs = {from};
    instruction.outputs = {to};
    all().push_back(instruction);
    return *this;
  }
  Calls &add(int from, int to,
             CollectiveKind kind = CollectiveKind::allGather) {
    return add(at(from), at(to), kind);
  }
  std::vector<Instruction> &all() { return stage.programs[0].instructions; }
  /// First and end.
  std::vector<std::vector<std::size_t>> joints() const {
    std::vector<std::vector<std::size_t>> found;
    for (const JointCollectives &one : jointCollectives(plan, stage)) {
      EXPECT_EQ(one.program, 0);
      found.push_back({one.first, one.end});
    }
    return found;
  }

  static constexpr std::int64_t kElement = 4; ///< bytes
  Plan plan;
  Stage stage;
};

const std::vector<std::size_t> kBoth = {0, 2};

TEST(JointCollectives, AreOfAllKindsButAllToAll) {
  EXPECT_THAT(Calls().joints(), IsEmpty());
  EXPECT_THAT(Calls().add(0, 2).joints(), IsEmpty());
  EXPECT_THAT(Calls()
                  .add(0, 2, CollectiveKind::allReduce)
                  .add(4, 6, CollectiveKind::reduceScatter)
                  .add(8, 10, CollectiveKind::allGather)
                  .joints(),
              ElementsAre(ElementsAre(0, 3)));
  for (const std::size_t other : {0, 1, 2, 3}) {
    Calls calls;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto at = 4 * static_cast<int>(i);
      calls.add(at, at + 2,
                i == other ? CollectiveKind::allToAll
                           : CollectiveKind::allReduce);
    }
    const std::vector<std::vector<std::vector<std::size_t>>> expected = {
        {{1, 4}}, {{2, 4}}, {{0, 2}}, {{0, 3}}};
    EXPECT_EQ(calls.joints(), expected[other]);
  }
}

TEST(JointCollectives, AreOfOneGroupAndStreamAndWaitForNothingBetween) {
  Calls calls;
  calls.add(0, 2).add(4, 6).add(8, 10).add(12, 14);
  calls.all()[0].waits = {};
  EXPECT_THAT(calls.joints(), ElementsAre(ElementsAre(0, 4)));
  Calls waits = calls;
  waits.all()[2].waits = {0};
  EXPECT_THAT(waits.joints(),
              ElementsAre(ElementsAre(0, 2), ElementsAre(2, 4)));
  Calls group = calls;
  std::get<Collective>(group.all()[3].what).group = 1;
  EXPECT_THAT(group.joints(), ElementsAre(ElementsAre(0, 3)));
  Calls stream = calls;
  stream.all()[0].stream = 1;
  EXPECT_THAT(stream.joints(), ElementsAre(ElementsAre(1, 4)));
  Calls other = calls;
  other.all()[1].what = KernelCall{"copy", {}};
  EXPECT_THAT(other.joints(), ElementsAre(ElementsAre(2, 4)));
}

// Another stage may have something between them, and NCCL deals out what it is
// told at once otherwise.
TEST(JointCollectives, AreOfRanksOfOneStage) {
  Calls calls;
  calls.add(0, 2).add(4, 6);
  EXPECT_THAT(calls.joints(), ElementsAre(kBoth));
  calls.plan.groups[0].communicators = {{0, 2}, {1, 3}};
  EXPECT_THAT(calls.joints(), IsEmpty());
}

TEST(JointCollectives, AreNotWithoutEnd) {
  Calls calls;
  calls.stage.arenas[0].size = 1 << 20;
  for (int i = 0; i < 100; ++i)
    calls.add(4 * i, 4 * i + 2);
  EXPECT_THAT(calls.joints(),
              ElementsAre(ElementsAre(0, 64), ElementsAre(64, 100)));
}

// What the first waits for all wait for.
TEST(JointCollectives, BeginWithOneThatMayWait) {
  Calls calls;
  calls.add(0, 2).add(4, 6).add(8, 10);
  calls.all()[0].what = KernelCall{"copy", {}};
  calls.all()[1].waits = {0};
  EXPECT_THAT(calls.joints(), ElementsAre(ElementsAre(1, 3)));
}

TEST(JointCollectives, NeitherWriteWhatOthersTouch) {
  EXPECT_THAT(Calls().add(0, 2).add(4, 6).joints(), ElementsAre(kBoth));
  // In place, and what all read.
  EXPECT_THAT(Calls().add(0, 0).add(2, 2).joints(), ElementsAre(kBoth));
  EXPECT_THAT(Calls().add(0, 2).add(0, 4).joints(), ElementsAre(kBoth));
  EXPECT_THAT(Calls().add(0, 2).add(3, 6).joints(), IsEmpty());
  EXPECT_THAT(Calls().add(4, 0).add(2, 5).joints(), IsEmpty());
  EXPECT_THAT(Calls().add(0, 4).add(2, 5).joints(), IsEmpty());
  // Those before it go together all the same, and those from it on.
  EXPECT_THAT(Calls().add(0, 2).add(4, 6).add(6, 8).add(10, 12).joints(),
              ElementsAre(ElementsAre(0, 2), ElementsAre(2, 4)));
}

TEST(JointCollectives, AreApartInEveryRun) {
  // Of copy 1 the first writes where the second reads.
  Calls copies;
  copies.add(copies.at(0), copies.at(2, 2)).add(4, 8);
  EXPECT_THAT(copies.joints(), ElementsAre(kBoth));
  for (auto entries : {&Stage::schedule, &Stage::reduce, &Stage::apply}) {
    Calls twice = copies;
    (twice.stage.*entries).push_back({.program = 0, .first = 1});
    EXPECT_THAT(twice.joints(), IsEmpty());
  }
  Calls slots;
  slots.add(slots.at(0), slots.at(2, 1, 2)).add(4, 8);
  EXPECT_THAT(slots.joints(), ElementsAre(kBoth));
  slots.stage.schedule.push_back({.program = 0, .microBatch = 3});
  EXPECT_THAT(slots.joints(), IsEmpty());
}

} // namespace
} // namespace mtplan::runtime
