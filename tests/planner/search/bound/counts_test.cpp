//===- counts_test.cpp - Every configuration is counted once --------------===//

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "planner/search/bound/bounds.h"
#include "planner/search/search.h"
#include "planner/search/solve_candidate.h"
#include "tests/planner/search/space/space_case.h"

namespace mtplan::planner {
namespace {

// Solved, pruned, refused and unreached configurations add up to the space. A
// rejection may count several configurations; it names one of them.
TEST(Counts, AddUpToTheSpace) {
  std::int64_t pruned = 0, solved = 0, refused = 0, unreached = 0, families = 0;
  for (unsigned seed = 0; seed < 36; ++seed) {
    Case drawn = drawCase(seed);
    openEverything(drawn, 16.0);
    drawn.options.top = 1 + static_cast<int>(seed % 4);
    if (seed % 3 == 1)
      drawn.options.recompute = {{Recompute::full}};
    StageCache cache;
    Rejection ignored;
    std::vector<Parallelism> space =
        wholeSpace(drawn.model, drawn.machine, drawn.options);
    const Parallelism &one = space[space.size() / 2];
    auto planned =
        solveCandidate(withBatch(drawn.model, one.microBatch * one.dp),
                       drawn.options, drawn.machine, one, {}, cache, ignored);
    ASSERT_TRUE(planned);
    for (int round = 0; round < 5; ++round) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << round);
      const double shares[] = {4.0, 1.0, 0.8, 0.5, 1.2};
      drawn.machine.device.memory =
          Bytes{shares[round] * planned->memory.total().value};
      drawn.options.atMost =
          Seconds{round == 1 ? planned->time.step.value
                             : std::numeric_limits<double>::infinity()};
      int asked = 0;
      drawn.options.stop = nullptr;
      if (round == 4)
        drawn.options.stop = [&] { return ++asked > 3; };
      SearchResult result = search(drawn.model, drawn.machine, drawn.options);
      EXPECT_EQ(result.candidates, std::ssize(space));
      EXPECT_EQ(result.pruned + result.solved + result.refused +
                    result.unreached,
                result.candidates);
      EXPECT_GE(result.solved, std::ssize(result.plans));
      Bounds bounds(drawn.model, drawn.machine, drawn.options);
      auto listed = std::ssize(result.plans);
      for (const Rejection &rejection : result.rejections) {
        if (rejection.config.microBatch == 0)
          continue;
        listed += rejection.count;
        families += rejection.count > 1;
        EXPECT_NE(std::ranges::find(space, rejection.config), space.end());
        if (rejection.isLowerBound &&
            rejection.reason == Rejection::Reason::memory) {
          EXPECT_GT(rejection.needed, drawn.machine.device.memory);
          // The strategies of a single configuration give a higher bound.
          if (rejection.count > 1) {
            EXPECT_LE(rejection.needed.value,
                      bounds.memory(rejection.config).value * (1 + 1e-9));
          }
        }
      }
      EXPECT_EQ(listed, result.candidates);
      pruned += result.pruned;
      solved += result.solved;
      refused += result.refused;
      unreached += result.unreached;
    }
  }
  for (std::int64_t all : {pruned, solved, refused, unreached, families})
    EXPECT_GT(all, 20);
}

} // namespace
} // namespace mtplan::planner
