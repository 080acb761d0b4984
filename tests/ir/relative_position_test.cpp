//===- relative_position_test.cpp - Buckets of relative distance ----------===//

#include <gtest/gtest.h>

#include "runtime/backend/relative_position.h"
#include "runtime/reference/relative_position.h"

namespace {

// The backends share no code with the reference kernels that judge them.
TEST(RelativePosition, IsTheSameInTheRuntime) {
  for (int rows : {4, 8, 32})
    for (int farthest : {2, 16, 128})
      for (bool both : {false, true})
        for (int distance = -300; distance <= 300; ++distance)
          ASSERT_EQ(
              mtplan::runtime::relativeBucket(distance, rows, farthest, both),
              mtplan::runtime::reference::relativeBucket(distance, rows,
                                                         farthest, both))
              << distance << " of " << farthest << " in " << rows;
}

} // namespace
