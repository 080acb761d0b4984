//===- conformance_test.cpp - Kernels of GPUs, on the emulator ------------===//

#include <gtest/gtest.h>

#include "runtime/backend/signature.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/device.h"
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

// A kernel in which a barrier is missing gives other numbers.
TEST(CudaKernels, GiveTheSameBitsInTheOtherOrderOfThreads) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  for (ElementType type : kTypes)
    for (const Case &one : catalog(type, 5)) {
      const std::vector<Bytes> there = one.runBytes(*backend);
      emulator::setOrder(emulator::Order::descending);
      const std::vector<Bytes> back = one.runBytes(*backend);
      emulator::setOrder(emulator::Order::ascending);
      EXPECT_EQ(there, back) << titleOf(one);
    }
}

} // namespace
} // namespace mtplan::runtime::testing
