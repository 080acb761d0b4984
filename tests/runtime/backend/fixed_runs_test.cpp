//===- fixed_runs_test.cpp - Runs that are always the same ----------------===//

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;

const TensorView kTwo{ElementType::f32, {2}, {}};

FixedRun copied(const float *from, float *to) {
  return {{"copy", "x", {}, {kTwo}, {kTwo}}, {from}, {to}};
}

// A backend that cannot fuse the runs into one kernel executes them in order.
TEST(FixedRuns, RunInOrderWithoutAFusedKernel) {
  const std::unique_ptr<Backend> backend = makeReferenceBackend();
  std::array<float, 6> x{1, 2, 3, 4, 5, 6};
  const std::unique_ptr<Kernel> all =
      prepareAll(*backend, {copied(&x[0], &x[2]), copied(&x[2], &x[4])});
  EXPECT_EQ(all->flops(), 0.0);
  all->run({});
  EXPECT_THAT(x, ElementsAre(1, 2, 1, 2, 1, 2));
  x[1] = 7;
  all->run({});
  EXPECT_THAT(x, ElementsAre(1, 7, 1, 7, 1, 7));
  prepareAll(*backend, {})->run({});
}

} // namespace
} // namespace mtplan::runtime
