//===- queue_test.cpp - Streams, events and graphs of a backend -----------===//

#include <thread>

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "runtime/cuda/device_error.h"
#include "runtime/cuda/handles.h"
#include "tests/emulator/streams.h"

namespace mtplan::runtime {
namespace {

using emulator::StreamOrder;

/// Runs kernels on two streams of a backend. grow() adds the value in `by` to
/// its argument.
class DeviceQueue : public ::testing::TestWithParam<StreamOrder> {
protected:
  DeviceQueue() {
    emulator::setStreamOrder(GetParam());
    queue.open(2, 2);
    put(by, 1.0F);
  }
  ~DeviceQueue() override { emulator::setStreamOrder(StreamOrder::first); }

  void put(const Allocation &place, float value) {
    memory.upload(place.get(), &value, sizeof(value));
  }
  float at(const Allocation &place) {
    float value = 0;
    memory.download(&value, place.get(), sizeof(value));
    return value;
  }
  void grow(const Allocation &sum) {
    const void *in = by.get();
    void *out = sum.get();
    accumulate->run({&in, &out});
  }
  void copy(const Allocation &from, const Allocation &to) {
    const void *in = from.get();
    void *out = to.get();
    copies->run({&in, &out});
  }
  /// Queues work on stream 0, then on stream 1, then on stream 0 again, ordered
  /// by events.
  void forkAndJoin() {
    queue.select(0);
    grow(first);
    queue.record(0);
    queue.select(1);
    queue.wait(0);
    copy(first, second);
    grow(second);
    queue.record(1);
    queue.select(0);
    queue.wait(1);
    copy(second, first);
  }

  std::unique_ptr<Backend> backend = makeCudaBackend();
  Memory &memory = backend->memory();
  Queue &queue = backend->queue();
  const TensorView one{ElementType::f32, {1}, {}};
  std::unique_ptr<Kernel> accumulate = backend->prepare(
                              {"accumulate", "grow", {}, {one}, {one}}),
                          copies = backend->prepare(
                              {"copy", "copy", {}, {one}, {one}});
  Allocation by{memory, sizeof(float)}, first{memory, sizeof(float)},
      second{memory, sizeof(float)};
};

TEST_P(DeviceQueue, MemoryBeginsWithZeros) { EXPECT_EQ(at(first), 0.0F); }

TEST_P(DeviceQueue, FinishRunsAllQueuedWork) {
  forkAndJoin();
  queue.finish();
  float fetched = 0;
  memory.fetch(&fetched, first.get(), sizeof(fetched));
  EXPECT_EQ(fetched, 2.0F);
}

// The host updates pinned memory between a download and an upload.
TEST_P(DeviceQueue, TheHostWaitsForOneEvent) {
  Allocation hosts(memory.staging(), sizeof(float));
  grow(first);
  queue.record(0);
  queue.select(1);
  queue.wait(0);
  memory.queueDownload(hosts.get(), first.get(), sizeof(float));
  queue.record(1);
  queue.await(1);
  *hosts.as<float>() += 10.0F;
  memory.queueUpload(second.get(), hosts.get(), sizeof(float));
  queue.select(0);
  EXPECT_THROW(queue.recorded([&] {
    queue.record(0);
    queue.await(0);
  }),
               DeviceError);
  queue.finish();
  EXPECT_EQ(at(second), 11.0F);
}

TEST_P(DeviceQueue, ARecordingDoesNothingUntilItIsReplayed) {
  const std::unique_ptr<Recording> recording =
      queue.recorded([&] { forkAndJoin(); });
  EXPECT_EQ(at(first), 0.0F);
  for (int times = 1; times <= 3; ++times) {
    recording->replay();
    EXPECT_EQ(at(first), 2.0F * static_cast<float>(times));
  }
  // A replay reads the contents that memory has when it runs.
  put(by, 10.0F);
  recording->replay();
  EXPECT_EQ(at(first), 26.0F);
}

TEST_P(DeviceQueue, ARecordingMayNotWaitForTheDevice) {
  EXPECT_THROW(queue.recorded([&] {
    grow(first);
    queue.finish();
  }),
               DeviceError);
  EXPECT_THROW(queue.recorded([&] { Allocation(memory, 16); }), DeviceError);
  // The failed recordings leave the queue usable.
  forkAndJoin();
  EXPECT_EQ(at(first), 2.0F);
}

// While one thread records a stream, a watchdog thread may query events, and a
// thread of NCCL may allocate memory.
TEST_P(DeviceQueue, ARecordingForbidsOtherThreadsNothing) {
  const auto recording = queue.recorded([&] {
    grow(first);
    std::thread([&] {
      EXPECT_NO_THROW(cuda::DeviceMemory(16));
      EXPECT_TRUE(cuda::Event().hasHappened());
    }).join();
  });
  recording->replay();
  queue.finish();
  EXPECT_EQ(at(first), 1.0F);
}

TEST_P(DeviceQueue, ARecordingMustJoinItsStreams) {
  EXPECT_THROW(queue.recorded([&] {
    queue.select(0);
    queue.record(0);
    queue.select(1);
    queue.wait(0);
    grow(first);
    queue.select(0);
  }),
               DeviceError);
}

TEST_P(DeviceQueue, ARecordingRejectsEventsFromOutside) {
  queue.select(1);
  queue.record(1);
  queue.select(0);
  EXPECT_THROW(queue.recorded([&] {
    grow(first);
    queue.wait(1);
  }),
               DeviceError);
}

INSTANTIATE_TEST_SUITE_P(Paces, DeviceQueue,
                         ::testing::Values(StreamOrder::first,
                                           StreamOrder::last,
                                           StreamOrder::asked));

} // namespace
} // namespace mtplan::runtime
