//===- conformance.h - What every backend must do ---------------*- C++ -*-===//
//
// conformance.cpp defines the tests, and catalog_test.cpp their cases. The test
// file of each backend instantiates the tests.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_RUNTIME_BACKEND_CONFORMANCE_H
#define MTPLAN_TESTS_RUNTIME_BACKEND_CONFORMANCE_H

#include <cstdlib>
#include <functional>
#include <ostream>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/backend/kernel_case.h"

namespace mtplan::runtime::testing {

/// Counts the samples of every case. No other dimension has this size, so the
/// shape alone shows which dimension counts the samples.
inline constexpr std::int64_t kSamples = 4;

/// Returns calls of every kernel with several shapes, shards and settings.
///
/// \param type  type of activations and weights. Sums over samples have type
/// f64 if `type` is f64, otherwise f32.
std::vector<Case> catalog(ElementType type, unsigned seed);

/// Returns attention and its gradient in shapes of real models, for which some
/// backends have several kernels. `type` must have 16 bits.
std::vector<Case> modelAttention(ElementType type, unsigned seed);

struct Contender {
  const char *name;
  /// Returns null if there is no device.
  std::function<std::unique_ptr<Backend>()> make;
  /// Lists kernels whose result for a sample may depend on the number of
  /// samples.
  std::set<std::string> joinSamples = {};
};

inline std::ostream &operator<<(std::ostream &out, const Contender &contender) {
  return out << contender.name;
}

inline constexpr ElementType kTypes[] = {ElementType::f64, ElementType::f32,
                                         ElementType::f16, ElementType::bf16};

/// Returns a description of a case for messages.
std::string titleOf(const Case &one);

class Conformance : public ::testing::TestWithParam<Contender> {
protected:
  // Skips the tests if the device is missing. If MTPLAN_REQUIRE_ALL_BACKENDS is
  // set, the tests fail instead, so that a machine with the device cannot miss
  // them.
  void SetUp() override {
    if (backend)
      return;
    if (std::getenv("MTPLAN_REQUIRE_ALL_BACKENDS"))
      FAIL() << "no device for " << GetParam().name;
    GTEST_SKIP() << "no device for " << GetParam().name;
  }
  std::unique_ptr<Backend> backend = GetParam().make();
};

} // namespace mtplan::runtime::testing

#endif // MTPLAN_TESTS_RUNTIME_BACKEND_CONFORMANCE_H
