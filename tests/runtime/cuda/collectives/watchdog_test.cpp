//===- watchdog_test.cpp - Devices that hang or are late ------------------===//
//
// Every case ends because the watchdog finds the fault. If the watchdog does
// not find it, the case hangs until the test times out.
//
//===----------------------------------------------------------------------===//

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/nccl.h"
#include "tests/runtime/communicator/cases.h"
#include "tests/runtime/cuda/collectives/device_ranks.h"

namespace mtplan::runtime::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Pieces kOne = {ElementType::f32, 1, 1};

/// Runs ranks with a device each. The test fails unless the run throws.
RunErrors
failing(int ranks, const std::function<void(DeviceRank &)> &body,
        std::chrono::milliseconds patience = std::chrono::milliseconds(900)) {
  RunErrors outcome;
  outcome.ofRank.resize(ranks);
  WorldOptions options;
  options.patience = patience;
  options.ending = std::chrono::seconds(60);
  try {
    onDevices(Devices::oneEach, ranks, options, [&](DeviceRank &rank) {
      outcome.record(rank.host.rank(), [&] { body(rank); });
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::exception &error) {
    outcome.thrown = error.what();
  }
  EXPECT_EQ(emulator::ncclCommunicators(), 0);
  return outcome;
}

/// Queues an all-reduce, waits for the device, and throws the fault if the
/// watchdog has found one.
void sum(DeviceRank &rank, Communicator &group, const std::string &label) {
  float value = 1.0F;
  group.allReduce(label, &value, &value, kOne, Reduction::sum);
  rank.finish();
  rank.world.check();
}

constexpr const char *kLate =
    "rank 1 did not reach all-gather \"call 1 on GPUs, all-reduce "
    "\"h.3.mlp.fc2\" of 1 x 1 f32, sum\" of 1 x 1 i32, in group \"tp\" (ranks "
    "0 1 2) within 900 ms";

TEST(WatchdogTest, LateRankIsNamed) {
  std::atomic<bool> over{false};
  const RunErrors outcome = failing(3, [&](DeviceRank &rank) {
    const auto group = rank.world.group("tp", {0, 1, 2});
    sum(rank, *group, "first");
    if (rank.host.rank() == 1) {
      while (!over)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    try {
      sum(rank, *group, "h.3.mlp.fc2");
    } catch (...) {
      over = true;
      throw;
    }
  });
  EXPECT_THAT(outcome.ofRank[0], HasSubstr(kLate));
  EXPECT_THAT(outcome.ofRank[2], HasSubstr(kLate));
  EXPECT_EQ(outcome.thrown, kLate);
}

// The rank's host has called, but its device has not reached the call.
TEST(WatchdogTest, HangingDeviceIsNamed) {
  emulator::NcclFaults faults;
  const RunErrors outcome = failing(3, [&](DeviceRank &rank) {
    const auto group = rank.world.group("tp", {0, 1, 2});
    sum(rank, *group, "first");
    rank.host.barrier("then");
    if (rank.host.rank() == 1) {
      // A kernel before the call does not end.
      emulator::enqueuePolled(rank.stream(), [&] {
        return emulator::Polled([&] {
          try {
            rank.world.check();
            return false;
          } catch (const CommunicationError &) {
            return true;
          }
        });
      });
    }
    sum(rank, *group, "h.3.mlp.fc2");
  });
  for (const std::string &error : outcome.ofRank)
    EXPECT_THAT(error, HasSubstr(kLate));
  EXPECT_EQ(outcome.thrown, kLate);
}

TEST(WatchdogTest, EndedRankIsNamed) {
  const RunErrors outcome = failing(2, [](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1});
    if (rank.host.rank() == 1)
      throw std::out_of_range("no such token");
    sum(rank, *group, "grads");
  });
  EXPECT_THAT(outcome.ofRank[0], HasSubstr("rank 1 failed: no such token"));
  EXPECT_EQ(outcome.thrown, "no such token");
}

// All devices have reached the call, but NCCL does not complete it.
TEST(WatchdogTest, HangingCallIsNamed) {
  emulator::NcclFaults faults;
  const RunErrors outcome = failing(2, [&](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1});
    rank.world.beginStep(12);
    sum(rank, *group, "first");
    rank.host.barrier("then");
    faults.silence(1);
    rank.world.beginStep(13);
    sum(rank, *group, "grads");
  });
  EXPECT_EQ(outcome.thrown,
            "step 13, call 1 on GPUs, all-reduce \"grads\" of 1 x 1 f32, sum, "
            "in group "
            "\"dp\" (ranks 0 1): all ranks have reached it, and it has not "
            "ended within 900 ms");
}

TEST(WatchdogTest, NcclErrorIsReported) {
  emulator::NcclFaults faults;
  const RunErrors outcome = failing(
      3,
      [&](DeviceRank &rank) {
        const auto group = rank.world.group("tp", {0, 1, 2});
        sum(rank, *group, "first");
        rank.host.barrier("then");
        if (rank.host.rank() == 2)
          faults.breakDown(2);
        else
          sum(rank, *group, "h.3.mlp.fc2");
        rank.world.barrier("end");
      },
      std::chrono::minutes(10));
  const auto named =
      HasSubstr("group \"tp\" (ranks 0 1 2), on rank 2: NCCL reports: remote "
                "process exited or there was a network error (emulated: the "
                "last error)");
  for (const std::string &error : outcome.ofRank)
    EXPECT_THAT(error, named);
  EXPECT_THAT(outcome.ofRank[0], StartsWith("rank 2 failed: "));
}

TEST(WatchdogTest, GroupThatCannotBeMadeIsNamed) {
  const auto making = [](DeviceRank &rank) {
    rank.world.group("tp", {0, 1, 2});
  };
  {
    emulator::NcclFaults faults;
    faults.failInit(1);
    const RunErrors outcome = failing(3, making, std::chrono::minutes(10));
    EXPECT_EQ(outcome.thrown,
              "group \"tp\" (ranks 0 1 2), on rank 1: NCCL reports: unhandled "
              "system error (emulated: the last error)");
    EXPECT_EQ(outcome.ofRank[2], "rank 1 failed: " + outcome.thrown);
  }
  emulator::NcclFaults faults;
  faults.stallInit(1);
  const RunErrors outcome = failing(3, making, std::chrono::milliseconds(20));
  EXPECT_EQ(outcome.thrown, "group \"tp\" (ranks 0 1 2): NCCL did not create "
                            "the communicator within 200 ms");
}

// With mismatched calls, NCCL itself would hang or corrupt memory.
TEST(WatchdogTest, MismatchedCallsAreReportedWithBothSides) {
  const RunErrors outcome = failing(2, [](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1});
    float in = 1.0F, out[2] = {};
    if (rank.host.rank() == 0)
      group->allReduce("a", &in, out, kOne, Reduction::sum);
    else
      group->allGather("b", &in, out, kOne);
    rank.finish();
    rank.world.check();
  });
  EXPECT_THAT(
      outcome.thrown,
      AllOf(HasSubstr("calls do not match in group \"dp\" (ranks 0 1)"),
            HasSubstr("rank 0 calls all-gather \"call 0 on GPUs, all-reduce "
                      "\"a\""),
            HasSubstr("rank 1 calls all-gather \"call 0 on GPUs, all-gather "
                      "\"b\"")));
}

// In both directions, the sender and the receiver disagree on the first message
// of a channel. The channel is connected at this message (nccl_mail.h).
TEST(WatchdogTest, MismatchedMessagesAreReportedWithBothSides) {
  const RunErrors outcome = failing(2, [](DeviceRank &rank) {
    const int other = 1 - rank.host.rank();
    float value = 1.0F, there = 0.0F;
    rank.world.send("h.0", &value, 4, other, 0);
    rank.world.receive("h.1", &there, 4, other, 0);
  });
  EXPECT_THAT(outcome.thrown,
              AllOf(HasSubstr("\"h.0\""), HasSubstr("\"h.1\"")));
}

// The missing message is the first of its channel, at which the channel is
// connected (nccl_mail.h), or a later one.
TEST(WatchdogTest, UnsentMessageIsNamed) {
  for (const bool first : {true, false}) {
    std::array<float, 2> values{}; // [rank]; devices may write late
    const RunErrors outcome = failing(2, [&](DeviceRank &rank) {
      float &value = values.at(rank.host.rank());
      if (rank.host.rank() == 0) {
        if (!first)
          rank.world.send("h.0", &value, 4, 1, 3);
        rank.host.barrier("never");
      }
      if (!first)
        rank.world.receive("h.0", &value, 4, 0, 3);
      rank.world.receive("h.1", &value, 4, 0, 3);
      rank.finish();
      rank.world.check();
    });
    EXPECT_THAT(
        outcome.thrown,
        AnyOf(AllOf(HasSubstr("ranks wait for each other"),
                    HasSubstr("rank 1 for rank 0 in receive \"h.1"),
                    HasSubstr("from rank 0 on channel 3"),
                    HasSubstr("rank 0 for rank 1 in barrier \"never\"")),
              HasSubstr("rank 1 did not reach barrier \"never\"")));
  }
}

TEST(WatchdogTest, UnreceivedMessageIsNamed) {
  std::array<float, 2> values{};
  const RunErrors outcome = failing(2, [&](DeviceRank &rank) {
    float &value = values.at(rank.host.rank());
    for (const char *label : {"h.0", "h.1"}) {
      if (rank.host.rank() == 0)
        rank.world.send(label, &value, 4, 1, 3);
      else if (std::string(label) == "h.0")
        rank.world.receive(label, &value, 4, 0, 3);
    }
  });
  EXPECT_EQ(outcome.thrown,
            "rank 0 failed: rank 1 did not receive \"h.1\" of 4 bytes from "
            "rank 0 on channel 3 within 900 ms");
}

// Old versions lack symbols, so the version is checked first.
TEST(WatchdogTest, OldLibraryIsRejected) {
  emulator::NcclFaults faults;
  faults.setVersion(22105);
  EXPECT_EQ(failing(2, [](DeviceRank &) {}).thrown,
            "this machine has NCCL 2.21, and mtrun needs 2.23 or later");
}

} // namespace
} // namespace mtplan::runtime::testing
