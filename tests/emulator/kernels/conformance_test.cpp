//===- conformance_test.cpp - Kernels of GPUs, on the emulator ------------===//

#include <optional>

#include <gtest/gtest.h>

#include "runtime/backend/signature.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/device.h"
#include "tests/emulator/races.h"
#include "tests/runtime/kernels/conformance.h"

namespace mtplan::runtime::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Emulated, Conformance,
    ::testing::Values(Contender{"cuda", makeCudaBackend, {"einsum"}}),
    [](const auto &of) { return std::string(of.param.name); });

TEST(CudaKernels, AreAllThereAre) {
  EXPECT_EQ(cudaKernelNames(), kernelNames());
}

// What a barrier is missing for gives other numbers, or would on a device.
TEST(CudaKernels, GiveTheSameBitsInTheOtherOrderOfThreads) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  const std::uint64_t before = emulator::accessesWatched();
  for (ElementType type : kTypes)
    for (const Case &one : catalog(type, 5)) {
      // Which is slow, and alike of all types.
      std::optional<emulator::WatchedAccesses> watched;
      if (type == ElementType::f32)
        watched.emplace();
      const std::vector<Bytes> there = one.runBytes(*backend);
      watched.reset();
      emulator::setOrder(emulator::Order::descending);
      const std::vector<Bytes> back = one.runBytes(*backend);
      emulator::setOrder(emulator::Order::ascending);
      EXPECT_EQ(there, back) << titleOf(one);
    }
  EXPECT_GT(emulator::accessesWatched(), before);
}

} // namespace
} // namespace mtplan::runtime::testing
