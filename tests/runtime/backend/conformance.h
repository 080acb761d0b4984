//===- conformance.h - What every backend must do ---------------*- C++ -*-===//
//
// conformance.cpp has the tests; who has a backend instantiates them.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_RUNTIME_BACKEND_CONFORMANCE_H
#define MTPLAN_TESTS_RUNTIME_BACKEND_CONFORMANCE_H

#include <cstdlib>
#include <functional>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "tests/runtime/backend/catalog.h"

namespace mtplan::runtime::testing {

struct Contender {
  const char *name;
  std::function<std::unique_ptr<Backend>()> make; ///< null: not here
  /// In which what one sample gives may depend on how many there are.
  std::set<std::string> joinSamples = {};
};

inline std::ostream &operator<<(std::ostream &out, const Contender &contender) {
  return out << contender.name;
}

inline constexpr ElementType kTypes[] = {ElementType::f64, ElementType::f32,
                                         ElementType::f16, ElementType::bf16};

/// A case, for messages.
std::string titleOf(const Case &one);

class Conformance : public ::testing::TestWithParam<Contender> {
protected:
  // A missing device skips on a laptop; on the machine that must have it, where
  // MTPLAN_REQUIRE_ALL_BACKENDS is set, nothing goes untested in silence.
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
