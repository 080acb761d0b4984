//===- grouped_collectives_test.cpp - Groups of collectives are checked ---===//

#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre, testing::IsEmpty;
using Found = std::vector<std::string>;

const std::string kHere = "/stages/0/programs/0/batches/0: ";
const std::string kConflict =
    kHere +
    "has an instruction that writes what another reads or writes, in copy ";
const std::string kApart = kHere + "needs consecutive instructions";

std::string ungrouped(int instruction) {
  return kHere + "has instruction " + std::to_string(instruction) +
         ", which is not a collective that can be grouped";
}

/// Returns the numbers from `first` to `end` - 1.
std::vector<int> range(int first, int end) {
  std::vector<int> all(static_cast<std::size_t>(end - first));
  std::iota(all.begin(), all.end(), first);
  return all;
}

/// Builds a stage with one program of collectives. Each collective reads two
/// elements of an arena and writes two elements.
struct Calls {
  Calls() {
    stage.arenas = {{MemoryClass::gradients, 4096}};
    stage.programs.resize(1);
    stage.programs[0].name = "update";
    stage.reduce = {{.program = 0}};
    stage.ranks = {0, 1};
    plan.groups = {{"dp", {{0, 1}, {2, 3}}}, {"tp", {{0, 1}, {2, 3}}}};
  }
  /// \param copies, slots  numbers of copies (layers) and of slots of the
  /// tensor, which are adjacent
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

  Found faultsOf(std::vector<int> instructions,
                 bool ofAllCopies = false) const {
    return faultsOfBatches(plan, stage,
                           {{std::move(instructions), ofAllCopies}});
  }
  Found faultsOfBoth(std::vector<int> some, std::vector<int> others) const {
    return faultsOfBatches(
        plan, stage, {{std::move(some), false}, {std::move(others), false}});
  }

  static constexpr std::int64_t kElement = 4; ///< bytes of an element
  Plan plan;
  Stage stage;
};

TEST(GroupedCollectives, AreOfAllKindsButAllToAll) {
  EXPECT_THAT(Calls().add(0, 2).faultsOf({0}),
              ElementsAre(kHere + "has 1 instructions, needs at least 2"));
  EXPECT_THAT(Calls()
                  .add(0, 2, CollectiveKind::allReduce)
                  .add(4, 6, CollectiveKind::reduceScatter)
                  .add(8, 10, CollectiveKind::allGather)
                  .faultsOf({0, 1, 2}),
              IsEmpty());
  const std::vector<std::vector<int>> others = {range(1, 4), range(2, 4),
                                                range(0, 2), range(0, 3)};
  for (int exchange = 0; exchange < 4; ++exchange) {
    Calls calls;
    for (int i = 0; i < 4; ++i)
      calls.add(4 * i, 4 * i + 2,
                i == exchange ? CollectiveKind::allToAll
                              : CollectiveKind::allReduce);
    EXPECT_THAT(calls.faultsOf({0, 1, 2, 3}), ElementsAre(ungrouped(exchange)));
    EXPECT_THAT(calls.faultsOf(others[static_cast<std::size_t>(exchange)]),
                IsEmpty());
  }
}

TEST(GroupedCollectives, AreOfOneGroupAndStreamAndWaitForNothingBetween) {
  Calls calls;
  calls.add(0, 2).add(4, 6).add(8, 10).add(12, 14);
  const std::vector<int> all = range(0, 4);
  EXPECT_THAT(calls.faultsOf(all), IsEmpty());
  Calls waits = calls;
  waits.all()[2].waits = {0};
  EXPECT_THAT(waits.faultsOf(all),
              ElementsAre(kHere + "waits at instruction 2; only the first may "
                                  "wait"));
  EXPECT_THAT(waits.faultsOfBoth({0, 1}, {2, 3}), IsEmpty());
  Calls group = calls;
  std::get<Collective>(group.all()[3].what).group = 1;
  EXPECT_THAT(group.faultsOf(all),
              ElementsAre(kHere + R"(has groups "dp" and "tp"; it needs one)"));
  EXPECT_THAT(group.faultsOf({0, 1, 2}), IsEmpty());
  Calls stream = calls;
  stream.all()[3].stream = 1;
  EXPECT_THAT(stream.faultsOf(all),
              ElementsAre(kHere + "is on several streams: instruction 3 is on "
                                  "stream 1, the first on 0"));
  EXPECT_THAT(stream.faultsOf({0, 1, 2}), IsEmpty());
  stream.all()[3].stream = 0;
  stream.all()[0].stream = 1;
  EXPECT_THAT(stream.faultsOf(all), testing::SizeIs(3));
  EXPECT_THAT(stream.faultsOf({1, 2, 3}), IsEmpty());
}

TEST(GroupedCollectives, AreConsecutive) {
  Calls calls;
  calls.add(0, 2).add(4, 6).add(8, 10).add(12, 14);
  EXPECT_THAT(calls.faultsOf({0, 1, 3}), ElementsAre(kApart));
  calls.all()[1].what = KernelCall{"copy", {}};
  EXPECT_THAT(calls.faultsOf({0, 1, 2, 3}), ElementsAre(ungrouped(1)));
  EXPECT_THAT(calls.faultsOf({0, 2, 3}), ElementsAre(kApart));
  EXPECT_THAT(calls.faultsOf({2, 3}), IsEmpty());
}

TEST(GroupedCollectives, AreAllOverlappedOrNone) {
  Calls calls;
  calls.add(0, 2).add(4, 6);
  calls.all()[1].overlapped = true;
  EXPECT_THAT(calls.faultsOf({0, 1}),
              ElementsAre(kHere + "has overlapped collectives and others"));
  calls.all()[0].overlapped = true;
  EXPECT_THAT(calls.faultsOf({0, 1}), IsEmpty());
}

// Ranks of another stage may call something else between the collectives, and
// NCCL schedules a group of calls differently from single calls.
TEST(GroupedCollectives, AreOfRanksOfOneStage) {
  Calls calls;
  calls.add(0, 2).add(4, 6);
  EXPECT_THAT(calls.faultsOf({0, 1}), IsEmpty());
  calls.plan.groups[0].communicators = {{0, 2}, {1, 3}};
  EXPECT_THAT(
      calls.faultsOf({0, 1}),
      ElementsAre(kHere +
                  R"(is of group "dp", in which other stages have part)"));
}

TEST(GroupedCollectives, AreOfOneCopy) {
  EXPECT_THAT(Calls().add(0, 2).add(4, 6).faultsOf({0, 1}, true),
              ElementsAre(kHere + "is of all copies, which only kernels of "
                                  "/apply may be"));
}

// The plan has no limit; the pass that makes the groups has one.
TEST(GroupedCollectives, MayBeAnyNumber) {
  Calls calls;
  calls.stage.arenas[0].size = 1 << 20;
  for (int i = 0; i < 100; ++i)
    calls.add(4 * i, 4 * i + 2);
  EXPECT_THAT(calls.faultsOf(range(0, 100)), IsEmpty());
  EXPECT_THAT(calls.faultsOfBoth(range(0, 64), range(64, 100)), IsEmpty());
  calls.all().back().outputs = calls.all().front().inputs;
  EXPECT_THAT(calls.faultsOf(range(0, 100)), ElementsAre(kConflict + "0"));
  EXPECT_THAT(calls.faultsOfBoth(range(0, 64), range(64, 100)), IsEmpty());
}

// The first collective of a group may wait for a kernel. A group that includes
// the kernel is rejected.
TEST(GroupedCollectives, OnlyTheFirstMayWait) {
  Calls calls;
  calls.add(0, 2).add(4, 6).add(8, 10);
  calls.all()[0].what = KernelCall{"copy", {}};
  calls.all()[1].waits = {0};
  EXPECT_THAT(calls.faultsOf({1, 2}), IsEmpty());
  EXPECT_THAT(calls.faultsOf({0, 1, 2}),
              ElementsAre(kHere + "is in \"update\" of /reduce, where only "
                                  "collectives are grouped"));
}

TEST(GroupedCollectives, NeverWriteWhatOthersTouch) {
  EXPECT_THAT(Calls().add(0, 2).add(4, 6).faultsOf({0, 1}), IsEmpty());
  // Collectives may work in place, or share an operand.
  EXPECT_THAT(Calls().add(0, 0).add(2, 2).faultsOf({0, 1}), IsEmpty());
  EXPECT_THAT(Calls().add(0, 2).add(0, 4).faultsOf({0, 1}), IsEmpty());
  const auto conflict = ElementsAre(kConflict + "0");
  EXPECT_THAT(Calls().add(0, 2).add(3, 6).faultsOf({0, 1}), conflict);
  EXPECT_THAT(Calls().add(4, 0).add(2, 5).faultsOf({0, 1}), conflict);
  EXPECT_THAT(Calls().add(0, 4).add(2, 5).faultsOf({0, 1}), conflict);
  Calls four;
  four.add(0, 2).add(4, 6).add(6, 8).add(10, 12);
  EXPECT_THAT(four.faultsOfBoth({0, 1}, {2, 3}), IsEmpty());
  EXPECT_THAT(four.faultsOf({0, 1, 2}), conflict);
  EXPECT_THAT(four.faultsOf({1, 2}), conflict);
  EXPECT_THAT(four.faultsOf({0, 1, 2, 3}), conflict);
}

TEST(GroupedCollectives, TouchBytesOfTheirOwnInEveryRun) {
  // In copy 1, the first collective writes what the second reads.
  Calls copies;
  copies.add(copies.at(0), copies.at(2, 2)).add(4, 8);
  EXPECT_THAT(copies.faultsOf({0, 1}), IsEmpty());
  for (auto entries : {&Stage::schedule, &Stage::reduce, &Stage::apply}) {
    Calls twice = copies;
    (twice.stage.*entries).push_back({.program = 0, .first = 1});
    EXPECT_THAT(twice.faultsOf({0, 1}), ElementsAre(kConflict + "1"));
  }
  Calls slots;
  slots.add(slots.at(0), slots.at(2, 1, 2)).add(4, 8);
  EXPECT_THAT(slots.faultsOf({0, 1}), IsEmpty());
  slots.stage.schedule.push_back({.program = 0, .microBatch = 3});
  EXPECT_THAT(slots.faultsOf({0, 1}), ElementsAre(kConflict + "0"));
}

} // namespace
} // namespace mtplan::runtime
