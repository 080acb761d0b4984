//===- device_test.cpp - The emulated device ------------------------------===//

#include <numeric>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/device.h"

namespace mtplan::emulator {
namespace {

using testing::HasSubstr;

std::string faultOf(dim3 block, const std::function<void()> &thread) {
  try {
    run(dim3(1), block, thread);
  } catch (const std::logic_error &error) {
    return error.what();
  }
  return "nothing";
}

TEST(Emulator, RunsEveryThreadOnce) {
  std::vector<int> runs(2 * 3 * 4 * 5, 0);
  run(dim3(2, 3), dim3(4, 5), [&] {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    runs[block * blockDim.x * blockDim.y + thread] += 1;
  });
  EXPECT_THAT(runs, testing::Each(1));
}

TEST(Emulator, RejectsGridsBeyondADevicesLimits) {
  EXPECT_TRUE(isOfDevice(dim3(0x7FFFFFFF, 65535), dim3(32, 32)));
  EXPECT_FALSE(isOfDevice(dim3(1, 65536), dim3(32)));
  EXPECT_FALSE(isOfDevice(dim3(1), dim3(1025)));
  EXPECT_FALSE(isOfDevice(dim3(0), dim3(32)));
}

TEST(Emulator, BarriersKeepWritesBeforeReads) {
  for (const Order order : {Order::ascending, Order::descending}) {
    setOrder(order);
    std::vector<int> shared(64), sums(64);
    run(dim3(1), dim3(64), [&] {
      shared[threadIdx.x] = static_cast<int>(threadIdx.x);
      __syncthreads();
      sums[threadIdx.x] = std::accumulate(shared.begin(), shared.end(), 0);
    });
    EXPECT_THAT(sums, testing::Each(64 * 63 / 2));
  }
  setOrder(Order::ascending);
}

TEST(Emulator, WarpBarriersIgnoreOtherWarps) {
  for (const Order order : {Order::ascending, Order::descending}) {
    setOrder(order);
    std::vector<int> shared(64, 0), next(64);
    run(dim3(1), dim3(64), [&] {
      // Warp 0 reaches no barrier.
      if (threadIdx.x < 32)
        return;
      shared[threadIdx.x] = static_cast<int>(threadIdx.x);
      __syncwarp();
      next[threadIdx.x] = shared[32 + (threadIdx.x + 1) % 32];
    });
    for (int i = 32; i < 64; ++i)
      EXPECT_EQ(next[static_cast<std::size_t>(i)], 32 + (i + 1) % 32);
  }
  setOrder(Order::ascending);
}

TEST(Emulator, AMissingBarrierChangesResultsWithTheOrder) {
  std::vector<std::vector<int>> seen;
  for (const Order order : {Order::ascending, Order::descending}) {
    setOrder(order);
    std::vector<int> shared(32, 0), next(32);
    run(dim3(1), dim3(32), [&] {
      shared[threadIdx.x] = 1;
      next[threadIdx.x] = shared[(threadIdx.x + 1) % 32];
    });
    seen.push_back(next);
  }
  setOrder(Order::ascending);
  EXPECT_NE(seen[0], seen[1]);
}

TEST(Emulator, ShufflesWithinWarps) {
  std::vector<float> got(64);
  run(dim3(1), dim3(64), [&] {
    const float mine = static_cast<float>(threadIdx.x) + 0.5F;
    got[threadIdx.x] = __shfl_xor_sync(0xffffffffU, mine, 16);
  });
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(got[i], static_cast<float>(i ^ 16U) + 0.5F);
}

TEST(Emulator, ReportsShufflesAndBarriersThatWouldHang) {
  EXPECT_THAT(faultOf(dim3(64),
                      [] {
                        if (threadIdx.x == 0)
                          __syncthreads();
                        else if (threadIdx.x == 40)
                          __shfl_sync(0xffffffffU, 1, 9);
                      }),
              HasSubstr("asks for lane 9"));
  EXPECT_THAT(faultOf(dim3(32),
                      [] {
                        if (threadIdx.x == 3)
                          __syncthreads();
                        else
                          __shfl_sync(0xffffffffU, 1, 8);
                      }),
              HasSubstr("that others of its"));
}

TEST(Emulator, ReportsWritesBeyondDynamicSharedMemory) {
  const auto write = [](std::size_t at) {
    run(
        dim3(1), dim3(1),
        [at] { static_cast<char *>(launchedMemory())[at] = 7; }, 64);
  };
  EXPECT_NO_THROW(write(63));
  EXPECT_THROW(write(64), std::logic_error);
}

TEST(Emulator, RethrowsAThreadsException) {
  EXPECT_EQ(faultOf(dim3(32),
                    [] {
                      if (threadIdx.x == 5)
                        throw std::logic_error("here");
                      __syncthreads();
                    }),
            "here");
}

} // namespace
} // namespace mtplan::emulator
