//===- conformance_test.cpp - The CUDA backend ----------------------------===//

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/runtime/backend/conformance.h"

namespace mtplan::runtime::testing {
namespace {

std::unique_ptr<Backend> makeIfThere() {
  return cudaDevices() > 0 ? makeCudaBackend() : nullptr;
}

INSTANTIATE_TEST_SUITE_P(
    Device, Conformance,
    ::testing::Values(Contender{"cuda", makeIfThere, {"einsum"}}),
    [](const auto &of) { return std::string(of.param.name); });

} // namespace
} // namespace mtplan::runtime::testing
