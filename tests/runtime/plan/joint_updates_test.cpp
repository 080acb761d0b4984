//===- joint_updates_test.cpp - Updates that may be one kernel ------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/joint_updates.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre, testing::IsEmpty;

/// A stage that updates by one program, of kernels that copy two elements from
/// one place of an arena to another.
struct Updates {
  Updates() {
    stage.arenas = {{MemoryClass::parameters, 4096}};
    stage.programs = {{"update", {}}};
    stage.apply = {{.program = 0}};
  }
  /// An element on by copy, so many of them.
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
  /// First, end, and 1 if of all copies.
  std::vector<std::vector<std::size_t>> joints() const {
    std::vector<std::vector<std::size_t>> found;
    for (const JointUpdates &one : jointUpdates(stage))
      found.push_back({one.first, one.end, one.ofAllCopies ? 1U : 0U});
    return found;
  }

  static constexpr std::int64_t kElement = 4; ///< bytes
  Stage stage;
};

const std::vector<std::size_t> kBoth = {0, 2, 1};

TEST(JointUpdates, AreOfKernelsThatNeitherWriteWhatOthersTouch) {
  EXPECT_THAT(Updates().joints(), IsEmpty());
  EXPECT_THAT(Updates().copy(0, 2).joints(), IsEmpty());
  EXPECT_THAT(Updates().copy(0, 2).copy(4, 6).joints(), ElementsAre(kBoth));
  // All may read the same, and each what it writes itself.
  EXPECT_THAT(Updates().copy(0, 2).copy(0, 4).joints(), ElementsAre(kBoth));
  EXPECT_THAT(Updates().copy(0, 0).copy(2, 2).joints(), ElementsAre(kBoth));
  // Reading and writing, one element of two.
  EXPECT_THAT(Updates().copy(0, 2).copy(3, 6).joints(), IsEmpty());
  EXPECT_THAT(Updates().copy(4, 0).copy(2, 5).joints(), IsEmpty());
  // Writing and writing.
  EXPECT_THAT(Updates().copy(0, 4).copy(2, 5).joints(), IsEmpty());
}

// What lies between two that overlap is no excuse.
TEST(JointUpdates, AreComparedBeyondTheNext) {
  Updates wide;
  wide.add(wide.at(0, 12), wide.at(0, 12));
  EXPECT_THAT(Updates(wide).copy(14, 10).joints(), IsEmpty());
  EXPECT_THAT(Updates(wide).copy(14, 12).joints(), ElementsAre(kBoth));
}

TEST(JointUpdates, AreOfAllCopies) {
  Updates updates;
  updates.add(updates.at(0, 2, 3), updates.at(6, 2, 3));
  EXPECT_THAT(updates.joints(), IsEmpty());
  updates.stage.apply[0].count = 3;
  EXPECT_THAT(updates.joints(), ElementsAre(testing::ElementsAre(0, 1, 1)));
  // The first copy writes what the second reads.
  Updates meeting;
  meeting.stage.apply[0].count = 2;
  meeting.add(meeting.at(0, 2, 3), meeting.at(2, 2, 3));
  EXPECT_THAT(meeting.joints(), IsEmpty());
}

TEST(JointUpdates, EndWhereSomethingElseOrAWaitComes) {
  Updates updates;
  updates.copy(0, 2).copy(4, 6).copy(8, 10).copy(12, 14);
  EXPECT_THAT(updates.joints(), ElementsAre(testing::ElementsAre(0, 4, 1)));
  Updates waits = updates;
  waits.all()[2].waits = {0};
  EXPECT_THAT(waits.joints(), ElementsAre(testing::ElementsAre(0, 2, 0),
                                          testing::ElementsAre(2, 4, 0)));
  Updates other = updates;
  other.all()[0].what = KernelCall{"zeros", {}};
  EXPECT_THAT(other.joints(), ElementsAre(testing::ElementsAre(1, 4, 0)));
  Updates apart = updates;
  apart.all()[3].stream = 1;
  EXPECT_THAT(apart.joints(), ElementsAre(testing::ElementsAre(0, 3, 0)));
  Updates twice = updates;
  twice.stage.reduce = twice.stage.apply;
  EXPECT_THAT(twice.joints(), IsEmpty());
}

} // namespace
} // namespace mtplan::runtime
