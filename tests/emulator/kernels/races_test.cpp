//===- races_test.cpp - Data races of kernels -----------------------------===//

#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulator/device.h"
#include "tests/emulator/races.h"

namespace mtplan::emulator {
namespace {

using testing::HasSubstr;

class Races : public ::testing::Test {
protected:
  const WatchedAccesses watched;

  static std::string faultOf(dim3 blocks, dim3 threads,
                             const std::function<void()> &thread) {
    try {
      run(blocks, threads, thread, 64);
    } catch (const std::logic_error &error) {
      return error.what();
    }
    return "nothing";
  }
};

/// Each thread writes its number and then reads the next thread's.
void tellNext(float *numbers, bool waits) {
  const unsigned thread = threadIdx.x;
  numbers[thread] = static_cast<float>(thread);
  if (waits)
    __syncthreads();
  const float next = numbers[(thread + 1) % blockDim.x];
  if (waits)
    __syncthreads();
  numbers[thread] = next;
}

TEST_F(Races, AMissingBarrierIsFoundInEitherOrder) {
  std::vector<float> numbers(64);
  for (const Order order : {Order::ascending, Order::descending}) {
    setOrder(order);
    EXPECT_THAT(faultOf(1, 64, [&] { tellNext(numbers.data(), false); }),
                HasSubstr("touch the same memory, which"));
    EXPECT_EQ(faultOf(1, 64, [&] { tellNext(numbers.data(), true); }),
              "nothing");
  }
  setOrder(Order::ascending);
}

// A shuffle transfers values but does not order memory accesses.
TEST_F(Races, AShuffleIsNoBarrier) {
  std::vector<float> numbers(32);
  EXPECT_THAT(faultOf(1, 32,
                      [&] {
                        numbers[threadIdx.x] = 1.0F;
                        __shfl_xor_sync(0xffffffffU, 1, 1);
                        numbers[(threadIdx.x + 1) % 32] += 1.0F;
                      }),
              HasSubstr("without a barrier between them"));
}

TEST_F(Races, BlocksMayNotShareWrittenMemory) {
  std::vector<float> numbers(4);
  EXPECT_EQ(faultOf(4, 1, [&] { numbers[blockIdx.x] += 1.0F; }), "nothing");
  EXPECT_EQ(faultOf(2, 1, [&] { numbers[0] += 1.0F; }),
            "block 1: blocks 1 and 0 touch the same memory, which 0 writes");
}

TEST_F(Races, SharedMemoryIsUndefinedInEachBlock) {
  EXPECT_THAT(faultOf(2, 2,
                      [] {
                        __shared__ float left;
                        if (blockIdx.x == 0 && threadIdx.x == 0)
                          left = 1.0F;
                        __syncthreads();
                        volatile float mine = left;
                        static_cast<void>(mine);
                      }),
              HasSubstr("reads shared memory that nobody has written"));
}

TEST_F(Races, ReportsMisalignedAddresses) {
  alignas(16) float numbers[12] = {};
  uint2 pair{};
  EXPECT_THAT(faultOf(1, 1,
                      [&] {
                        float *volatile from = numbers + 1;
                        pair = *reinterpret_cast<const uint2 *>(from);
                      }),
              HasSubstr("is not aligned, 4 after a multiple of 16"));
}

} // namespace
} // namespace mtplan::emulator
