//===- emulated_nccl_test.cpp - The emulated NCCL -------------------------===//

#include <array>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <nccl.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/in_flight.h"
#include "tests/emulator/nccl.h"
#include "tests/emulator/streams.h"

namespace mtplan::emulator {
namespace {

/// Describes a rank, which has a thread, a device and a stream of its own.
struct Rank {
  int number = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

void onRanks(int ranks, const std::function<void(Rank &)> &body) {
  setDevices(ranks);
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::vector<std::thread> threads;
  threads.reserve(ranks);
  for (int number = 0; number < ranks; ++number)
    threads.emplace_back([&, number] {
      Rank rank{number};
      cudaSetDevice(number);
      cudaStreamCreateWithFlags(&rank.stream, 0);
      EXPECT_EQ(ncclCommInitRank(&rank.comm, ranks, id, number), ncclSuccess);
      body(rank);
      if (rank.comm)
        ncclCommDestroy(rank.comm);
      cudaStreamDestroy(rank.stream);
    });
  for (std::thread &thread : threads)
    thread.join();
  setDevices(1);
  EXPECT_EQ(ncclCommunicators(), 0);
}

TEST(EmulatedNccl, Adds) {
  onRanks(3, [](Rank &rank) {
    const auto in = static_cast<float>(rank.number + 1);
    float out = 0;
    EXPECT_EQ(
        ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, rank.comm, rank.stream),
        ncclSuccess);
    cudaStreamSynchronize(rank.stream);
    EXPECT_EQ(out, 6.0F);
  });
}

// Each rank sends before it receives. Without a group, the sends would hang.
TEST(EmulatedNccl, SendsAndReceivesOfAGroupGoTogether) {
  onRanks(2, [](Rank &rank) {
    const std::array<float, 2> in{static_cast<float>(rank.number), 7.0F};
    std::array<float, 2> out{};
    ncclGroupStart();
    ncclSend(in.data(), 2, ncclFloat, 1 - rank.number, rank.comm, rank.stream);
    ncclRecv(out.data(), 2, ncclFloat, 1 - rank.number, rank.comm, rank.stream);
    ncclGroupEnd();
    cudaStreamSynchronize(rank.stream);
    EXPECT_EQ(out[0], static_cast<float>(1 - rank.number));
  });
}

// The calls of a group are one launch, which may run them in any order.
TEST(EmulatedNccl, CallsOfAGroupMayNotTouchWhatAnotherWrites) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  takeNcclLaunches();
  onRanks(2, [](Rank &rank) {
    const auto all = [&](std::array<float, 4> &data, int from, int to) {
      ncclAllReduce(&data.at(from), &data.at(to), 1, ncclFloat, ncclSum,
                    rank.comm, rank.stream);
    };
    std::array<float, 4> data{1, 2, 3, 4};
    ncclGroupStart();
    all(data, 0, 2);
    all(data, 1, 1);
    all(data, 0, 3);
    ncclGroupEnd();
    cudaStreamSynchronize(rank.stream);
    EXPECT_THAT(data, ElementsAre(1, 4, 2, 2));
  });
  EXPECT_EQ(takeNcclLaunches(), 2);
  EXPECT_THAT(takeNcclMisuses(), IsEmpty());
  onRanks(1, [](Rank &rank) {
    std::array<float, 2> data{};
    ncclGroupStart();
    for (const int at : {0, 1})
      ncclAllReduce(data.data(), &data.at(at), 1, ncclFloat, ncclSum, rank.comm,
                    rank.stream);
    ncclGroupEnd();
    cudaStreamSynchronize(rank.stream);
  });
  EXPECT_THAT(takeNcclMisuses(),
              ElementsAre("calls of a group touch what one of them writes"));
}

TEST(EmulatedNccl, CallsOfAGroupAreAllCapturedOrNone) {
  onRanks(1, [](Rank &rank) {
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, 0);
    cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal);
    std::array<float, 2> data{};
    ncclGroupStart();
    ncclAllReduce(&data[0], &data[0], 1, ncclFloat, ncclSum, rank.comm,
                  rank.stream);
    ncclAllReduce(&data[1], &data[1], 1, ncclFloat, ncclSum, rank.comm, other);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(rank.stream, &graph);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(other);
  });
}

TEST(EmulatedNccl, CallsOfACommunicatorAreOrderedAcrossStreams) {
  onRanks(2, [](Rank &rank) {
    cudaStream_t other = nullptr;
    cudaStreamCreateWithFlags(&other, 0);
    float one = 1.0F, two = 0.0F;
    ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
    ncclAllReduce(&one, &two, 1, ncclFloat, ncclSum, rank.comm, other);
    cudaStreamSynchronize(other);
    EXPECT_EQ(two, 4.0F);
    cudaStreamSynchronize(rank.stream);
    cudaStreamDestroy(other);
  });
}

TEST(EmulatedNccl, MismatchedCallsHangUntilAborted) {
  onRanks(2, [](Rank &rank) {
    std::array<float, 2> data{};
    ncclAllReduce(data.data(), data.data(), 1 + rank.number, ncclFloat, ncclSum,
                  rank.comm, rank.stream);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(cudaStreamQuery(rank.stream), cudaErrorNotReady);
    ncclCommAbort(rank.comm);
    rank.comm = nullptr;
    cudaStreamSynchronize(rank.stream);
  });
}

// ncclCommFinalize() does not complete before all graphs are destroyed.
TEST(EmulatedNccl, ACommunicatorDoesNotEndBeforeItsGraphs) {
  onRanks(1, [](Rank &rank) {
    float one = 1.0F;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t launched = nullptr;
    cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal);
    ncclAllReduce(&one, &one, 1, ncclFloat, ncclSum, rank.comm, rank.stream);
    cudaStreamEndCapture(rank.stream, &graph);
    cudaGraphInstantiate(&launched, graph, 0);
    cudaGraphDestroy(graph);
    ASSERT_EQ(ncclCommFinalize(rank.comm), ncclSuccess);
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(rank.comm, &state);
    EXPECT_EQ(state, ncclInProgress);
    cudaGraphExecDestroy(launched);
    ncclCommGetAsyncError(rank.comm, &state);
    EXPECT_EQ(state, ncclSuccess);
  });
}

// NCCL makes connections, which allocate memory, at the first call of a kind.
TEST(EmulatedNccl, AsksForMemoryAtFirstCalls) {
  setMemoryWatch(true);
  onRanks(2, [](Rank &rank) {
    const auto add = [&] {
      static const float in = 1;
      static std::array<float, 2> out;
      return ncclAllReduce(&in, &out.at(rank.number), 1, ncclFloat, ncclSum,
                           rank.comm, rank.stream);
    };
    EXPECT_EQ(add(), ncclSuccess);
    // The device may now wait for the other rank, so allocations are not
    // allowed.
    EXPECT_EQ(add(), ncclSuccess);
    const float in = 1;
    std::array<float, 2> out{};
    EXPECT_EQ(
        ncclAllGather(&in, out.data(), 1, ncclFloat, rank.comm, rank.stream),
        ncclUnhandledCudaError);
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    ncclComm_t another = nullptr;
    EXPECT_EQ(ncclCommInitRank(&another, 1, id, 0), ncclUnhandledCudaError);
    cudaStreamSynchronize(rank.stream);
  });
  setMemoryWatch(false);
  EXPECT_THAT(takeMemoryFaults(),
              ::testing::Contains(::testing::StartsWith("a first call of NCCL "
                                                        "on device 0, while")));
}

// NCCL does not allow these uses of memory. Some of them fail only on some
// systems.
TEST(EmulatedNccl, RecordsMisusesOfMemory) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  takeNcclUse();
  onRanks(1, [](Rank &rank) {
    std::array<float, 2> foreign{};
    void *data = nullptr, *handle = nullptr, *again = nullptr;
    ASSERT_EQ(ncclMemAlloc(&data, 100), ncclSuccess);
    EXPECT_EQ(ncclCommRegister(rank.comm, foreign.data(), 8, &handle),
              ncclInvalidArgument);
    EXPECT_THAT(
        takeNcclMisuses(),
        ElementsAre("memory is registered that NCCL did not allocate there"));
    EXPECT_EQ(ncclCommRegister(rank.comm, data, 100, &handle), ncclSuccess);
    EXPECT_THAT(takeNcclMisuses(), IsEmpty());
    EXPECT_EQ(ncclCommRegister(rank.comm, data, 50, &again), ncclInvalidUsage);
    EXPECT_THAT(takeNcclMisuses(), ElementsAre("memory is registered twice"));
    auto *values = static_cast<float *>(data);
    ncclAllReduce(values, values + 5, 5, ncclFloat, ncclSum, rank.comm,
                  rank.stream);
    cudaStreamSynchronize(rank.stream);
    ncclAllReduce(foreign.data(), foreign.data(), 2, ncclFloat, ncclSum,
                  rank.comm, rank.stream);
    ncclMemFree(data);
    EXPECT_THAT(takeNcclMisuses(),
                ElementsAre("memory is freed that is registered",
                            "memory is freed while its device works"));
    cudaStreamSynchronize(rank.stream);
    EXPECT_EQ(ncclCommDeregister(rank.comm, handle), ncclSuccess);
    EXPECT_EQ(ncclCommDeregister(rank.comm, handle), ncclInvalidUsage);
    EXPECT_THAT(takeNcclMisuses(),
                ElementsAre("memory is deregistered that is not registered"));
    ncclMemAlloc(&data, 100);
    ncclCommRegister(rank.comm, data, 100, &handle);
    ncclComm_t gone = std::exchange(rank.comm, nullptr);
    ncclCommDestroy(gone);
    EXPECT_EQ(ncclCommDeregister(gone, handle), ncclInvalidArgument);
    ncclMemFree(data);
    ncclMemFree(foreign.data());
    EXPECT_THAT(
        takeNcclMisuses(),
        ElementsAre("a communicator ends that has memory registered",
                    "memory is deregistered with what is no communicator",
                    "memory is freed that NCCL did not allocate"));
  });
  EXPECT_EQ(takeNcclUse(), (NcclUse{0, 1, 0}));
}

TEST(EmulatedNccl, TwoRanksOnADeviceAreRefused) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  std::array<ncclComm_t, 2> comms{};
  ncclGroupStart();
  ncclCommInitRank(&comms[0], 2, id, 0);
  ncclCommInitRank(&comms[1], 2, id, 1);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  for (ncclComm_t comm : comms)
    ncclCommAbort(comm);
}

} // namespace
} // namespace mtplan::emulator
