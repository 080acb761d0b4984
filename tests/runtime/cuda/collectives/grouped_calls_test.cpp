//===- grouped_calls_test.cpp - NCCL calls grouped in one launch ----------===//

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/device.h"
#include "tests/emulator/nccl.h"
#include "tests/runtime/cuda/collectives/device_ranks.h"

namespace mtplan::runtime::testing {
namespace {

using emulator::StreamOrder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRanks = 3;
constexpr int kSum = 50; ///< elements of the all-reduce

/// Holds a rank's operands and the results of its calls.
struct Values {
  explicit Values(int rank) { begin(rank); }
  /// Resets the values in place.
  void begin(int rank) {
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i] = 0.1F * static_cast<float>((rank + 3) * (i % 29));
    for (std::vector<float> *one :
         {&scattered, &gathered, &scatteredRow, &gatheredRow, &alsoGathered,
          &alsoScattered})
      std::ranges::fill(*one, 0.0F);
    std::copy_n(in.begin(), kSum, sum.begin());
  }
  /// Makes one all-reduce, three reduce-scatters and three all-gathers, of one
  /// row or of four. No call accesses the result of another.
  void call(Communicator &group) {
    constexpr Pieces kRows = {ElementType::f32, 4, 5},
                     kRow = {ElementType::f32, 1, 20};
    group.allReduce("a", sum.data(), sum.data(), {ElementType::f32, 1, kSum},
                    Reduction::sum);
    group.reduceScatter("b", in.data(), scattered.data(), kRows,
                        Reduction::sum);
    group.allGather("c", in.data(), gathered.data(), kRows);
    group.reduceScatter("d", in.data(), scatteredRow.data(), kRow,
                        Reduction::max);
    group.allGather("e", in.data() + 7, gatheredRow.data(), kRow);
    group.allGather("f", in.data() + 3, alsoGathered.data(), kRows);
    group.reduceScatter("g", in.data() + 9, alsoScattered.data(), kRows,
                        Reduction::sum);
  }
  static constexpr int kCalls = 7;
  std::vector<std::vector<float>> all() const {
    return {sum,         scattered,    gathered,      scatteredRow,
            gatheredRow, alsoGathered, alsoScattered, in};
  }

  std::vector<float> in = std::vector<float>(200);
  std::vector<float> sum = std::vector<float>(kSum),
                     scattered = std::vector<float>(20),
                     gathered = std::vector<float>(60),
                     scatteredRow = scattered, gatheredRow = gathered,
                     alsoGathered = gathered, alsoScattered = scattered;
};

/// Runs ranks with a device each, with a timeout that slow machines do not
/// reach.
void onRanks(const std::function<void(DeviceRank &)> &body) {
  WorldOptions options;
  options.patience = std::chrono::minutes(10);
  onDevices(Devices::oneEach, kRanks, options, body);
  EXPECT_EQ(emulator::ncclCommunicators(), 0);
  EXPECT_THAT(emulator::takeNcclMisuses(), IsEmpty());
}

/// Holds the values of all tensors: [rank][tensor][element].
using Outputs = std::vector<std::vector<std::vector<float>>>;

/// Returns the values of all ranks after `calls`.
///
/// \param launches  receives the number of NCCL launches of all ranks
Outputs outputsOf(
    const std::function<void(DeviceRank &, Communicator &, Values &)> &calls,
    int &launches) {
  Outputs outputs(kRanks);
  onRanks([&](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1, 2});
    rank.host.barrier("all are made");
    if (rank.host.rank() == 0)
      emulator::takeNcclLaunches();
    rank.host.barrier("then");
    Values values(rank.host.rank());
    calls(rank, *group, values);
    rank.finish();
    rank.host.barrier("all have called");
    if (rank.host.rank() == 0)
      launches = emulator::takeNcclLaunches();
    outputs[rank.host.rank()] = values.all();
  });
  return outputs;
}

/// Returns the values after separate calls.
Outputs expected() {
  int launches = 0;
  Outputs outputs = outputsOf([](DeviceRank & /*rank*/, Communicator &group,
                                 Values &values) { values.call(group); },
                              launches);
  EXPECT_EQ(launches, kRanks * Values::kCalls);
  return outputs;
}

class GroupedCalls : public ::testing::TestWithParam<StreamOrder> {
protected:
  GroupedCalls() { emulator::setStreamOrder(GetParam()); }
  ~GroupedCalls() override { emulator::setStreamOrder(StreamOrder::first); }
};

TEST_P(GroupedCalls, GroupedCallsAreOneLaunchAndKeepBits) {
  int launches = 0;
  EXPECT_EQ(outputsOf(
                [](DeviceRank & /*rank*/, Communicator &group, Values &values) {
                  EXPECT_TRUE(group.joins());
                  group.together([&] { values.call(group); });
                },
                launches),
            expected());
  EXPECT_EQ(launches, kRanks);
}

// Only calls of several rows need the buffer for transpositions. It has space
// for two such calls, or, in the second run, for none.
TEST_P(GroupedCalls, LargeGroupsAreSeveralLaunches) {
  int launches = 0;
  const Outputs outputs = outputsOf(
      [](DeviceRank &rank, Communicator &group, Values &values) {
        rank.context->roomToJoin = 2 * 256;
        group.together([&] { values.call(group); });
      },
      launches);
  EXPECT_EQ(outputs, expected());
  EXPECT_EQ(launches, kRanks * 2);
  outputsOf(
      [](DeviceRank &rank, Communicator &group, Values &values) {
        rank.context->roomToJoin = 0;
        group.together([&] { values.call(group); });
      },
      launches);
  EXPECT_EQ(launches, kRanks * 4);
}

TEST_P(GroupedCalls, GroupingCanBeSwitchedOff) {
  int launches = 0;
  EXPECT_EQ(outputsOf(
                [](DeviceRank &rank, Communicator &group, Values &values) {
                  rank.context->joinsCollectives = false;
                  EXPECT_FALSE(group.joins());
                  group.together([&] { values.call(group); });
                },
                launches),
            expected());
  EXPECT_EQ(launches, kRanks * Values::kCalls);
}

// Groups run on two streams in turn, and are then replayed by a graph. All of
// them share the buffer for transpositions.
TEST_P(GroupedCalls, GroupsAreReplayedByAGraph) {
  onRanks([&](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1, 2});
    const auto queue = cuda::makeDeviceQueue(rank.context);
    queue->open(2, 2);
    const int own = rank.host.rank();
    Values one(own), other(own + kRanks), oneAlone(own),
        otherAlone(own + kRanks);
    for (Values *alone : {&oneAlone, &otherAlone}) {
      alone->call(*group);
      rank.finish();
    }
    EXPECT_NE(oneAlone.all(), otherAlone.all());
    const auto work = [&] {
      queue->select(0);
      queue->record(0);
      queue->select(1);
      queue->wait(0);
      group->together([&] { one.call(*group); });
      queue->record(1);
      queue->select(0);
      group->together([&] { other.call(*group); });
      queue->wait(1);
    };
    const auto expectBoth = [&] {
      rank.finish();
      EXPECT_EQ(one.all(), oneAlone.all());
      EXPECT_EQ(other.all(), otherAlone.all());
    };
    work();
    expectBoth();
    rank.world.beginRecording();
    std::unique_ptr<RecordedCalls> calls;
    const auto recording = queue->recorded([&] {
      work();
      calls = rank.world.endRecording();
    });
    for (int times = 0; times < 3; ++times) {
      one.begin(own);
      other.begin(own + kRanks);
      rank.host.barrier("all begin anew");
      calls->repeat();
      recording->replay();
      calls->repeated();
      expectBoth();
      rank.host.barrier("all are through");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(StreamOrders, GroupedCalls,
                         ::testing::Values(StreamOrder::first,
                                           StreamOrder::last,
                                           StreamOrder::asked));

// The calls before the error are not launched either, and the group is closed.
TEST(GroupedCallsTest, ThrowingGroupLaunchesNothing) {
  onRanks([](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1, 2});
    emulator::takeNcclLaunches();
    Values values(rank.host.rank());
    EXPECT_THROW(group->together([&] {
      values.call(*group);
      group->allReduce("x", nullptr, nullptr, {ElementType::f32, 1, -1},
                       Reduction::sum);
    }),
                 CommunicationError);
    rank.host.barrier("all have thrown");
    EXPECT_EQ(emulator::takeNcclLaunches(), 0);
    rank.host.barrier("all have looked");
    values.call(*group);
    rank.finish();
  });
}

// A call without elements is ignored, in a group or alone.
TEST(GroupedCallsTest, EmptyCallsAreIgnored) {
  onRanks([](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1, 2});
    float one = 1.0F;
    const auto nothing = [&] {
      group->allGather("none", nullptr, nullptr, {ElementType::f32, 0, 7});
    };
    group->together(nothing);
    group->together([] {});
    group->together([&] {
      nothing();
      group->allReduce("a", &one, &one, {ElementType::f32, 1, 1},
                       Reduction::sum);
      nothing();
    });
    rank.finish();
    EXPECT_EQ(one, 3.0F);
  });
}

// The error names the first call of the group, and the number of further calls.
TEST(GroupedCallsTest, GroupIsNamedByItsFirstCall) {
  WorldOptions options;
  options.patience = std::chrono::milliseconds(900);
  options.ending = std::chrono::seconds(60);
  std::string thrown;
  try {
    onDevices(Devices::oneEach, kRanks, options, [](DeviceRank &rank) {
      const auto group = rank.world.group("dp", {0, 1, 2});
      Values values(rank.host.rank());
      group->together([&] { values.call(*group); });
      rank.finish();
      if (rank.host.rank() == 1) {
        while (true)
          rank.world.check(); // until the other ranks time out
      }
      group->together([&] { values.call(*group); });
      rank.finish();
      rank.world.check();
    });
  } catch (const CommunicationError &error) {
    thrown = error.what();
  }
  EXPECT_THAT(thrown,
              HasSubstr("rank 1 did not reach all-gather \"call 7 on GPUs, "
                        "all-reduce \"a\" of 1 x 50 f32, sum, with 6 more\" of "
                        "1 x 1 i32, in group \"dp\" (ranks 0 1 2)"));
}

TEST(GroupedCallsTest, EnvironmentSwitchesGroupingOff) {
  emulator::setDevices(1);
  const auto isWanted = [](const char *value) {
    setenv("MTPLAN_JOINT_COLLECTIVES", value, 1);
    const bool wanted = cuda::Context().joinsCollectives;
    unsetenv("MTPLAN_JOINT_COLLECTIVES");
    return wanted;
  };
  EXPECT_TRUE(cuda::Context().joinsCollectives);
  EXPECT_TRUE(isWanted("1"));
  EXPECT_FALSE(isWanted("0"));
  try {
    isWanted("yes");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error &error) {
    unsetenv("MTPLAN_JOINT_COLLECTIVES");
    EXPECT_STREQ(error.what(),
                 "MTPLAN_JOINT_COLLECTIVES is \"yes\": must be 0 or 1");
  }
}

} // namespace
} // namespace mtplan::runtime::testing
