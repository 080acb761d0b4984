//===- relative_position_test.cpp - Two homes of one formula ----*- C++ -*-===//

#include <gtest/gtest.h>

#include "ir/relative_position.h"
#include "runtime/backend/relative_position.h"

namespace {

// The runtime does not see ir/, nor ir/ the runtime's backends.
TEST(RelativePosition, IsTheSameInTheRuntime) {
  for (int rows : {4, 8, 32})
    for (int farthest : {2, 16, 128})
      for (bool both : {false, true})
        for (int distance = -300; distance <= 300; ++distance)
          ASSERT_EQ(
              mtplan::runtime::relativeBucket(distance, rows, farthest, both),
              mtplan::ir::relativeBucket(distance, rows, farthest, both))
              << distance << " of " << farthest << " in " << rows;
}

} // namespace
