//===- recording_test.cpp - NCCL calls that a graph replays ---------------===//

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/device.h"
#include "tests/emulator/nccl.h"
#include "tests/runtime/cuda/collectives/device_ranks.h"

namespace mtplan::runtime::testing {
namespace {

using emulator::StreamOrder;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Pieces kOne = {ElementType::f32, 1, 1};
constexpr int kSteps = 5;

/// Runs a rank's work directly the first time, and by a graph from then on.
class Repeated {
public:
  Repeated(const DeviceRank &theRank, std::function<void()> theWork)
      : rank(theRank), queue(cuda::makeDeviceQueue(rank.context)),
        work(std::move(theWork)) {
    queue->open(2, 4);
  }
  void run() {
    if (++times == 1)
      return work();
    if (!recording) {
      rank.world.beginRecording();
      recording = queue->recorded([&] {
        work();
        calls = rank.world.endRecording();
      });
    }
    calls->repeat();
    recording->replay();
    calls->repeated();
  }
  Queue &streams() { return *queue; }

private:
  const DeviceRank &rank;
  const std::unique_ptr<Queue> queue;
  const std::function<void()> work;
  int times = 0;
  std::unique_ptr<RecordedCalls> calls;
  std::unique_ptr<Recording> recording;
};

/// Runs one rank on each device, with a timeout that no slow machine reaches.
void onOneEach(int ranks, const std::function<void(DeviceRank &)> &body) {
  WorldOptions options;
  options.patience = std::chrono::minutes(10);
  onDevices(Devices::oneEach, ranks, options, body);
  EXPECT_EQ(emulator::ncclCommunicators(), 0);
}

/// Runs tests under each order in which the emulated device may execute
/// concurrent streams.
class Recordings : public ::testing::TestWithParam<StreamOrder> {
protected:
  Recordings() { emulator::setStreamOrder(GetParam()); }
  ~Recordings() override { emulator::setStreamOrder(StreamOrder::first); }
};

// Two streams share the group's buffer for transpositions, within a graph,
// across two graphs and outside of graphs.
TEST_P(Recordings, ReplayedCollectivesReadCurrentData) {
  onOneEach(3, [](DeviceRank &rank) {
    const auto group = rank.world.group("tp", {0, 1, 2});
    const int place = group->place();
    // Each rank contributes two rows of one element.
    constexpr Pieces kRows = {ElementType::f32, 2, 1};
    std::vector<float> in(2), gathered(6), twice(6);
    Repeated forward(rank, [&] {
      Queue &queue = forward.streams();
      queue.select(0);
      queue.record(0);
      queue.select(1);
      queue.wait(0);
      group->allGather("a", in.data(), gathered.data(), kRows);
      queue.record(1);
      queue.select(0);
      group->allGather("b", in.data(), twice.data(), kRows);
      queue.wait(1);
    });
    std::vector<float> sum(2);
    Repeated update(rank, [&] {
      group->reduceScatter("c", gathered.data(), sum.data(), kRows,
                           Reduction::sum);
    });
    for (int step = 0; step < kSteps; ++step) {
      in = {static_cast<float>(100 * step + place),
            static_cast<float>(100 * step + place + 10)};
      forward.run();
      update.run();
      rank.finish();
      const float first = 100.0F * static_cast<float>(step);
      const std::vector<float> all = {first,      first + 1,  first + 2,
                                      first + 10, first + 11, first + 12};
      EXPECT_EQ(gathered, all);
      EXPECT_EQ(twice, all);
      EXPECT_EQ(sum[0], 3 * (first + static_cast<float>(place)));
      EXPECT_EQ(sum[1], 3 * (first + static_cast<float>(place + 10)));
      // This call is in no graph.
      std::vector<float> alone(6);
      group->allGather("d", in.data(), alone.data(), kRows);
      rank.finish();
      EXPECT_EQ(alone, all);
    }
  });
}

// In each direction, there are more messages than the kPieces buffers of a line
// (nccl_mail.h). The messages have two sizes, and some are not recorded.
TEST_P(Recordings, ReplayedMessagesReadCurrentData) {
  constexpr int kMessages = 21;
  onOneEach(2, [](DeviceRank &rank) {
    const int other = 1 - rank.host.rank();
    std::vector<std::vector<float>> out(kMessages), in(kMessages);
    for (int m = 0; m < kMessages; ++m)
      out[m] = in[m] = std::vector<float>(m % 3 == 0 ? 500 : 2);
    const auto exchange = [&] {
      const auto bytes = [](const std::vector<float> &message) {
        return static_cast<std::int64_t>(message.size() * sizeof(float));
      };
      // Sends are two messages ahead, like those of a pipeline.
      for (int m = 0; m < kMessages + 2; ++m) {
        if (m < kMessages)
          rank.world.send("h." + std::to_string(m), out[m].data(),
                          bytes(out[m]), other, 0);
        if (m >= 2)
          rank.world.receive("h." + std::to_string(m - 2), in[m - 2].data(),
                             bytes(in[m - 2]), other, 0);
      }
    };
    Repeated forward(rank, exchange);
    for (int step = 0; step < 2 * kSteps; ++step) {
      for (int m = 0; m < kMessages; ++m)
        out[m].assign(out[m].size(), static_cast<float>(100 * step + m));
      if (step % 4 == 3)
        exchange();
      else
        forward.run();
      rank.finish();
      for (int m = 0; m < kMessages; ++m)
        EXPECT_EQ(in[m], out[m]) << "step " << step << ", message " << m;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Paces, Recordings,
                         ::testing::Values(StreamOrder::first,
                                           StreamOrder::last,
                                           StreamOrder::asked));

/// Returns the error of two ranks with a short timeout; "" if there is none.
std::string thrownBy(const std::function<void(DeviceRank &)> &body) {
  WorldOptions options;
  options.patience = milliseconds(900);
  options.ending = std::chrono::seconds(60);
  std::string thrown;
  try {
    onDevices(Devices::oneEach, 2, options, body);
  } catch (const std::exception &error) {
    thrown = error.what();
  }
  EXPECT_EQ(emulator::ncclCommunicators(), 0);
  return thrown;
}

/// Runs two ranks for kSteps steps. In each step, `before` queues work, and two
/// all-reduces follow, by a graph from the second step on. Returns the error of
/// the run.
std::string
whatFails(const std::function<void(DeviceRank &, int step)> &before) {
  return thrownBy([&](DeviceRank &rank) {
    const auto group = rank.world.group("dp", {0, 1});
    float value = 1.0F;
    Repeated forward(rank, [&] {
      group->allReduce("early", &value, &value, kOne, Reduction::sum);
      group->allReduce("grads", &value, &value, kOne, Reduction::sum);
    });
    for (int step = 1; step <= kSteps; ++step) {
      rank.world.beginStep(step);
      before(rank, step);
      forward.run();
      rank.finish();
      rank.world.check();
      rank.host.barrier("step");
    }
  });
}

/// Queues work that blocks the rank's stream until the run fails, or until
/// `atMost` has passed.
void hold(const DeviceRank &rank, milliseconds atMost) {
  const auto end = std::chrono::steady_clock::now() + atMost;
  emulator::enqueuePolled(rank.stream(), [&rank, end] {
    return emulator::Polled([&rank, end] {
      try {
        rank.world.check();
        return std::chrono::steady_clock::now() > end;
      } catch (const CommunicationError &) {
        return true;
      }
    });
  });
}

TEST(RecordedWatchdogTest, HangingCallIsNamed) {
  emulator::NcclFaults faults;
  const std::string thrown = whatFails([&](DeviceRank &rank, int step) {
    if (step == 4 && rank.host.rank() == 1)
      faults.silence(1);
  });
  EXPECT_EQ(thrown, "step 4, call 2 on GPUs, all-reduce \"early\" of 1 x 1 "
                    "f32, sum, in group \"dp\" (ranks 0 1): all ranks have "
                    "reached it, and it has not ended within 900 ms");
}

TEST(RecordedWatchdogTest, HangingDeviceIsNamed) {
  const std::string thrown = whatFails([](DeviceRank &rank, int step) {
    if (step == 4 && rank.host.rank() == 1)
      hold(rank, std::chrono::minutes(10));
  });
  EXPECT_THAT(thrown, AllOf(HasSubstr("rank 1 did not reach all-gather "
                                      "\"step 4, call 2 on GPUs, all-reduce "
                                      "\"early\""),
                            HasSubstr("within 900 ms")));
}

// Runs two graphs per step. The host waits only for the first, as in a training
// step. Calls `hang` before the second graph. Returns the error of the run.
std::string
whatFailsBehind(const std::function<void(DeviceRank &, int step)> &hang) {
  return thrownBy([&](DeviceRank &rank) {
    const auto dp = rank.world.group("dp", {0, 1}),
               zero = rank.world.group("zero", {0, 1});
    float sums = 1.0F, weights = 1.0F;
    Repeated forward(rank, [&] {
      dp->allReduce("sums", &sums, &sums, kOne, Reduction::sum);
    });
    Repeated update(rank, [&] {
      zero->allReduce("weights", &weights, &weights, kOne, Reduction::sum);
    });
    try {
      for (int step = 1; step <= 2 * kSteps; ++step) {
        rank.world.beginStep(step);
        forward.run();
        forward.streams().record(0);
        hang(rank, step);
        update.run();
        forward.streams().await(0);
        rank.world.check();
      }
    } catch (...) {
      rank.finish(); // before the buffers and graphs here are destroyed
      throw;
    }
    rank.finish();
  });
}

TEST(RecordedWatchdogTest, HangingDeviceIsNamedWithoutAHostWait) {
  const std::string thrown = whatFailsBehind([](DeviceRank &rank, int step) {
    if (step == 4 && rank.host.rank() == 1)
      hold(rank, std::chrono::minutes(10));
  });
  EXPECT_THAT(thrown, AllOf(HasSubstr("rank 1 did not reach all-gather "
                                      "\"step 4, call 1 on GPUs, all-reduce "
                                      "\"weights\""),
                            HasSubstr("within 900 ms")));
}

// The graphs of both communicators end only when the second communicator is
// aborted. The first communicator is aborted after its graph has ended.
TEST(RecordedWatchdogTest, HangingCallIsNamedWithoutAHostWait) {
  emulator::NcclFaults faults;
  const std::string thrown = whatFailsBehind([&](DeviceRank &rank, int step) {
    if (step != 4)
      return;
    rank.finish();
    rank.host.barrier("then");
    faults.silence(1);
  });
  EXPECT_THAT(thrown, AllOf(HasSubstr("step 4, call 1 on GPUs, all-reduce "
                                      "\"weights\""),
                            HasSubstr("all ranks have reached it, and it has "
                                      "not ended within 900 ms")));
}

// The previous launch's records show that all ranks reached the call. They must
// not count for this launch.
TEST(RecordedWatchdogTest, LongWorkBeforeACallIsNoFault) {
  EXPECT_EQ(whatFails([](DeviceRank &rank, int step) {
              if (step == 4)
                hold(rank, milliseconds(700));
            }),
            "");
}

/// Emulates devices that have no times for events in graphs.
class MissingTimesTest : public ::testing::Test {
protected:
  MissingTimesTest() { emulator::setTimesInGraphs(false); }
  ~MissingTimesTest() override { emulator::setTimesInGraphs(true); }
};

TEST_F(MissingTimesTest, GraphsAreReplayedWithoutTimes) {
  EXPECT_EQ(whatFails([](DeviceRank &, int) {}), "");
}

TEST_F(MissingTimesTest, HangingCallIsNamedWithoutTimes) {
  emulator::NcclFaults faults;
  const std::string thrown = whatFails([&](DeviceRank &rank, int step) {
    if (step == 4 && rank.host.rank() == 1)
      faults.silence(1);
  });
  EXPECT_THAT(thrown,
              HasSubstr("step 4, call 2 on GPUs, all-reduce \"early\""));
}

} // namespace
} // namespace mtplan::runtime::testing
