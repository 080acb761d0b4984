//===- memory_watch_test.cpp - Memory calls that may deadlock -------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/in_flight.h"
#include "tests/emulator/streams.h"

namespace mtplan::emulator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MemoryWatch : public testing::Test {
protected:
  MemoryWatch() {
    setDevices(2);
    setMemoryWatch(true);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  ~MemoryWatch() override {
    cudaEventDestroy(event);
    cudaStreamDestroy(other);
    cudaStreamDestroy(stream);
    cudaDeviceSynchronize();
    setMemoryWatch(false);
    setDevices(1);
  }

  /// Queues work that may wait for other devices, like a collective.
  static void meet(cudaStream_t on) {
    enqueuePolled(on, [] { return [] { return true; }; });
  }
  /// Returns whether device 1 can allocate.
  static bool isGiven() {
    cudaSetDevice(1);
    void *data = nullptr;
    const cudaError_t status = cudaMalloc(&data, 1);
    if (status == cudaSuccess)
      cudaFree(data);
    cudaSetDevice(0);
    return status == cudaSuccess;
  }

  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
};

TEST_F(MemoryWatch, ForbidsAllocationUntilTheHostHasWaited) {
  EXPECT_TRUE(isGiven());
  enqueue(stream, [] {});
  EXPECT_TRUE(isGiven());
  meet(stream);
  EXPECT_FALSE(isGiven());
  cudaStreamSynchronize(other);
  EXPECT_FALSE(isGiven());
  cudaStreamSynchronize(stream);
  EXPECT_TRUE(isGiven());
  EXPECT_THAT(takeMemoryFaults(),
              testing::Each("cudaMalloc on device 1, while device 0 may wait "
                            "for others"));
}

TEST_F(MemoryWatch, FollowsEventsAcrossStreams) {
  meet(stream);
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(other, event, 0);
  meet(stream);
  cudaStreamSynchronize(other);
  EXPECT_FALSE(isGiven()); // the second meet() may still wait
  cudaEventRecord(event, stream);
  cudaEventSynchronize(event);
  EXPECT_TRUE(isGiven());
  meet(other);
  cudaDeviceSynchronize();
  EXPECT_TRUE(isGiven());
  takeMemoryFaults();
}

// Captured work forbids allocations only after its graph is launched.
TEST_F(MemoryWatch, CountsWorkOfLaunchedGraphs) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t launched = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  meet(stream);
  EXPECT_TRUE(isGiven());
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&launched, graph, 0);
  EXPECT_TRUE(isGiven());
  cudaGraphLaunch(launched, stream);
  EXPECT_FALSE(isGiven());
  cudaStreamSynchronize(stream);
  EXPECT_TRUE(isGiven());
  cudaGraphExecDestroy(launched);
  cudaGraphDestroy(graph);
  takeMemoryFaults();
}

TEST_F(MemoryWatch, AllowsAllocationWithASingleDevice) {
  setDevices(1);
  meet(stream);
  void *data = nullptr;
  EXPECT_EQ(cudaMallocHost(&data, 1), cudaSuccess);
  setDevices(2);
  EXPECT_EQ(cudaFreeHost(data), cudaErrorNotPermitted);
  EXPECT_THAT(takeMemoryFaults(),
              ElementsAre("cudaFreeHost on device 0, while device 0 may wait "
                          "for others"));
  cudaStreamSynchronize(stream);
  EXPECT_EQ(cudaFreeHost(data), cudaSuccess);
  EXPECT_THAT(takeMemoryFaults(), IsEmpty());
}

} // namespace
} // namespace mtplan::emulator
