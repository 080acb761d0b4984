//===- conformance_test.cpp - GPU kernels on the emulator -----------------===//

#include <algorithm>
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "runtime/backend/signature.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/base/test_helpers.h"
#include "tests/emulator/cublaslt.h"
#include "tests/emulator/device.h"
#include "tests/emulator/races.h"
#include "tests/runtime/backend/conformance.h"
#include "tests/runtime/backend/fused_cases.h"

namespace mtplan::runtime::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Emulated, Conformance,
    ::testing::Values(Contender{"cuda", makeCudaBackend, {"einsum"}}),
    [](const auto &of) { return std::string(of.param.name); });

TEST(CudaKernels, ImplementEveryKernelName) {
  EXPECT_EQ(cudaKernelNames(), kernelNames());
}

// A missing barrier would change the results or be reported as a race.
TEST(CudaKernels, GiveTheSameBitsInTheOtherOrderOfThreads) {
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  const std::uint64_t before = emulator::accessesWatched();
  for (ElementType type : kTypes)
    for (const Case &one : catalog(type, 5)) {
      // Checking accesses is slow, so it is on for one type only.
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

// No device is known to refuse the bias epilogue, but the library may.
TEST(CudaKernels, AddTheBiasIfTheLibraryRefuses) {
  const std::unique_ptr<Backend> asks = makeCudaBackend();
  for (ElementType type : kTypes)
    for (const Case &one : catalog(type, 3)) {
      if (one.spec.kernel != "einsum" || one.spec.inputs.size() < 3)
        continue;
      const std::vector<Doubles> expected = one.run(*asks);
      const emulator::RefusedBiases refused;
      const std::vector<Doubles> actual = one.run(*makeCudaBackend());
      // With a fused bias and with a separate one, each sum is rounded once.
      const double step = type == ElementType::f64    ? 1e-13
                          : type == ElementType::f32  ? 1e-5
                          : type == ElementType::bf16 ? 0x1p-7
                                                      : 0x1p-10;
      for (std::size_t e = 0; e < expected[0].size(); ++e)
        ASSERT_NEAR(actual[0][e], expected[0][e],
                    step * std::max(1.0, std::abs(expected[0][e])))
            << titleOf(one) << ", element " << e;
    }
}

// The library may also refuse the epilogue that sums an operand.
TEST(CudaKernels, SumTheBiasGradientIfTheLibraryRefuses) {
  const emulator::RefusedSums refused;
  const std::unique_ptr<Backend> backend = makeCudaBackend(),
                                 reference = makeReferenceBackend();
  for (ElementType type : {ElementType::f64, ElementType::f32})
    for (const Case &one : biasGradientCases(type, 1)) {
      const bool isAlone = one.spec.kernel == "sum";
      EXPECT_EQ(backend->prepare(one.spec)->isSequential(), !isAlone);
      const std::vector<Doubles> own = one.run(*backend),
                                 right = one.run(*reference);
      const bool accumulates = one.spec.find(kThen);
      for (std::size_t i = accumulates ? 1 : 0; i < own.size();
           i += accumulates ? 2 : 1)
        for (std::size_t e = 0; e < own[i].size(); ++e)
          ASSERT_NEAR(own[i][e], right[i][e], 1e-4)
              << titleOf(one) << ", result " << i << ", element " << e;
    }
}

/// Returns how many bf16 GELUs and bias gradients are fused if MTPLAN_EPILOGUES
/// is `epilogues`, or unset (null).
std::pair<int, int> joinedWith(const char *epilogues) {
  const ScopedVariable variable("MTPLAN_EPILOGUES", epilogues);
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  std::pair<int, int> found;
  for (const Case &one : followedCases(ElementType::bf16, 1)) {
    const Setting *kind = one.spec.find("kind");
    if (kind && std::get<std::string>(kind->value) == "gelu_tanh")
      found.first += !backend->prepare(one.spec)->isSequential();
  }
  for (const Case &one : biasGradientCases(ElementType::bf16, 1))
    if (one.spec.kernel == "einsum")
      found.second += !backend->prepare(one.spec)->isSequential();
  return found;
}

TEST(CudaKernels, FuseTheEpiloguesOfTheEnvironmentVariable) {
  const auto [gelus, sums] = joinedWith(nullptr);
  ASSERT_GT(gelus, 0);
  ASSERT_GT(sums, 0);
  EXPECT_EQ(joinedWith("gelu,sums"), std::pair(gelus, sums));
  EXPECT_EQ(joinedWith("gelu"), std::pair(gelus, 0));
  EXPECT_EQ(joinedWith("sums"), std::pair(0, sums));
  EXPECT_EQ(joinedWith("0"), std::pair(0, 0));
  for (const char *wrong : {"", "gelus", "gelu,", "1"})
    EXPECT_THROW(joinedWith(wrong), std::runtime_error) << wrong;
}

} // namespace
} // namespace mtplan::runtime::testing
