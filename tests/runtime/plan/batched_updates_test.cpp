//===- batched_updates_test.cpp - Multi-tensor updates are checked --------===//

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre, testing::IsEmpty;
using Found = std::vector<std::string>;

const std::string kHere = "/stages/0/programs/0/batches/0: ";
const std::string kNames = kHere + "needs kernels of one name";
const std::string kApart = kHere + "needs consecutive instructions";
const std::string kEntries =
    kHere + "is in \"update\", which does not run by one entry of /apply alone";

std::string conflict(int copy = 0) {
  return kHere +
         "has an instruction that writes what another reads or writes, in "
         "copy " +
         std::to_string(copy);
}

/// Builds a stage whose update is one program. The kernels of the program copy
/// two elements each within one arena.
struct Updates {
  Updates() {
    stage.arenas = {{MemoryClass::parameters, 4096}};
    stage.programs.resize(1);
    stage.programs[0].name = "update";
    stage.apply = {{.program = 0}};
  }
  /// \param copies  number of copies (layers) of the tensor, which are adjacent
  Tensor at(int element, std::int64_t size = 2, int copies = 1) {
    Buffer buffer{"x", 0, element * kElement, size * kElement};
    buffer.entries = copies;
    buffer.entryStride = size * kElement;
    stage.buffers.push_back(buffer);
    Tensor tensor;
    tensor.buffer = static_cast<int>(stage.buffers.size()) - 1;
    tensor.entryStep = copies > 1 ? 1 : 0;
    tensor.shape = {size};
    return tensor;
  }
  Instruction &add(const Tensor &from, const Tensor &to) {
    Instruction instruction;
    instruction.what = KernelCall{"copy", {}};
    instruction.inputs = {from};
    instruction.outputs = {to};
    return all().emplace_back(instruction);
  }
  Updates &copy(int from, int to) {
    add(at(from), at(to));
    return *this;
  }
  std::vector<Instruction> &all() { return stage.programs[0].instructions; }

  Found faultsOf(std::vector<int> instructions,
                 bool ofAllCopies = false) const {
    return faultsOfBatches({}, stage, {{std::move(instructions), ofAllCopies}});
  }
  Found faultsOfBoth(std::vector<int> some, std::vector<int> others) const {
    return faultsOfBatches(
        {}, stage, {{std::move(some), false}, {std::move(others), false}});
  }
  /// Returns the faults of a batch of the program's two kernels. The kernels
  /// run for only one copy (layer), so a batch of all copies must have the same
  /// faults.
  Found faultsOfTwo() const {
    Found faults = faultsOf({0, 1});
    EXPECT_EQ(faultsOf({0, 1}, true), faults);
    return faults;
  }

  static constexpr std::int64_t kElement = 4; ///< bytes of an element
  Stage stage;
};

TEST(BatchedUpdates, AreAtLeastTwoKernels) {
  EXPECT_THAT(Updates().faultsOf({0, 1}),
              ElementsAre(kHere + "needs ascending instructions of the "
                                  "program, which has 0, got 0"));
  EXPECT_THAT(Updates().copy(0, 2).faultsOf({0}),
              ElementsAre(kHere + "has 1 instructions, needs at least 2"));
  EXPECT_THAT(Updates().copy(0, 2).faultsOf({}, true),
              ElementsAre(kHere + "has 0 instructions, needs at least 1"));
  EXPECT_THAT(Updates().copy(0, 2).copy(4, 6).faultsOf({0, 1}), IsEmpty());
}

TEST(BatchedUpdates, NeverWriteWhatOthersTouch) {
  EXPECT_THAT(Updates().copy(0, 2).copy(4, 6).faultsOfTwo(), IsEmpty());
  // Kernels may read the same bytes, and each may overwrite its own operand.
  EXPECT_THAT(Updates().copy(0, 2).copy(0, 4).faultsOfTwo(), IsEmpty());
  EXPECT_THAT(Updates().copy(0, 0).copy(2, 2).faultsOfTwo(), IsEmpty());
  // One kernel reads one of the two elements that the other writes.
  EXPECT_THAT(Updates().copy(0, 2).copy(3, 6).faultsOfTwo(),
              ElementsAre(conflict()));
  EXPECT_THAT(Updates().copy(4, 0).copy(2, 5).faultsOfTwo(),
              ElementsAre(conflict()));
  // Both kernels write one element.
  EXPECT_THAT(Updates().copy(0, 4).copy(2, 5).faultsOfTwo(),
              ElementsAre(conflict()));
}

// Overlapping tensors need not be neighbours in the order of their offsets.
TEST(BatchedUpdates, AllOverlapsAreFound) {
  Updates wide;
  wide.add(wide.at(0, 12), wide.at(0, 12));
  EXPECT_THAT(Updates(wide).copy(14, 10).faultsOfTwo(),
              ElementsAre(conflict()));
  EXPECT_THAT(Updates(wide).copy(14, 12).faultsOfTwo(), IsEmpty());
}

TEST(BatchedUpdates, MayBeOfAllCopies) {
  Updates updates;
  updates.add(updates.at(0, 2, 3), updates.at(6, 2, 3));
  updates.stage.apply[0].count = 3;
  EXPECT_THAT(updates.faultsOf({0}, true), IsEmpty());
  EXPECT_THAT(updates.faultsOf({0}),
              ElementsAre(kHere + "has 1 instructions, needs at least 2"));
}

TEST(BatchedUpdates, OfAllCopiesNeverWriteWhatAnotherCopyReads) {
  Updates updates; // copy 0 writes what copy 1 reads
  updates.add(updates.at(0, 2, 3), updates.at(2, 2, 3));
  updates.stage.apply[0].count = 2;
  EXPECT_THAT(updates.faultsOf({0}, true), ElementsAre(conflict()));
  updates.add(updates.at(20, 2, 3), updates.at(30, 2, 3));
  EXPECT_THAT(updates.faultsOf({0, 1}), IsEmpty());
  EXPECT_THAT(updates.faultsOf({0, 1}, true), ElementsAre(conflict()));
  // Only copy 1 conflicts.
  updates.all()[1].outputs[0] = updates.at(4);
  EXPECT_THAT(updates.faultsOf({0, 1}), ElementsAre(conflict(1)));
}

TEST(BatchedUpdates, OfAllCopiesAreTheWholeProgram) {
  Updates updates;
  updates.copy(0, 2).copy(4, 6).copy(8, 10).copy(12, 14);
  EXPECT_THAT(updates.faultsOf({0, 1, 2, 3}, true), IsEmpty());
  EXPECT_THAT(updates.faultsOf({0, 1}, true),
              ElementsAre(kHere + "is of all copies, but has 2 of the "
                                  "program's 4 instructions"));
}

TEST(BatchedUpdates, OtherInstructionsAndWaitsAreRejected) {
  const std::vector<int> all = {0, 1, 2, 3};
  Updates updates;
  updates.copy(0, 2).copy(4, 6).copy(8, 10).copy(12, 14);
  EXPECT_THAT(updates.faultsOf(all), IsEmpty());
  EXPECT_THAT(updates.faultsOf({0, 2}), ElementsAre(kApart));
  Updates waits = updates;
  waits.all()[2].waits = {0};
  EXPECT_THAT(waits.faultsOf(all, true),
              ElementsAre(kHere + "waits at instruction 2; only the first may "
                                  "wait"));
  EXPECT_THAT(waits.faultsOfBoth({0, 1}, {2, 3}), IsEmpty());
  Updates other = updates;
  other.all()[0].what = KernelCall{"zeros", {}};
  EXPECT_THAT(other.faultsOf(all, true), ElementsAre(kNames));
  EXPECT_THAT(other.faultsOf({1, 2, 3}), IsEmpty());
  other.all()[0].what = Report{"loss"};
  EXPECT_THAT(other.faultsOf(all), ElementsAre(kNames));
  other.all()[3].what = Collective{};
  EXPECT_THAT(other.faultsOf({1, 2, 3}), ElementsAre(kNames));
  EXPECT_THAT(other.faultsOf({1, 2}), IsEmpty());
  Updates apart = updates;
  apart.all()[3].stream = 1;
  EXPECT_THAT(apart.faultsOf(all, true),
              ElementsAre(kHere + "is on several streams: instruction 3 is on "
                                  "stream 1, the first on 0"));
  EXPECT_THAT(apart.faultsOf({0, 1, 2}), IsEmpty());
}

TEST(BatchedUpdates, AreOfAProgramThatRunsByOneEntryOfTheUpdate) {
  Updates updates;
  updates.copy(0, 2).copy(4, 6);
  EXPECT_THAT(updates.faultsOfTwo(), IsEmpty());
  for (auto entries : {&Stage::schedule, &Stage::reduce, &Stage::apply}) {
    Updates twice = updates;
    (twice.stage.*entries).push_back({.program = 0});
    EXPECT_THAT(twice.faultsOfTwo(), ElementsAre(kEntries));
  }
}

TEST(BatchedUpdates, AreNotTheHosts) {
  Updates updates;
  updates.copy(0, 2).copy(4, 6);
  updates.stage.arenas.push_back({MemoryClass::host, 4096});
  const int copied = updates.all()[1].outputs[0].buffer;
  updates.stage.buffers[static_cast<std::size_t>(copied)].arena = 1;
  EXPECT_THAT(updates.faultsOfTwo(), testing::SizeIs(1));
  updates.stage.arenas[1].memoryClass = MemoryClass::optimizer;
  EXPECT_THAT(updates.faultsOfTwo(), IsEmpty());
  for (Arena &arena : updates.stage.arenas)
    arena.memoryClass = MemoryClass::host;
  EXPECT_THAT(
      updates.faultsOfTwo(),
      ElementsAre(kHere +
                  "has instruction 0, which the device does not compute"));
}

} // namespace
} // namespace mtplan::runtime
