//===- process_memory_test.cpp - Memory of this process -------------------===//

#include <vector>

#include <gtest/gtest.h>

#include "runtime/metrics/step_record.h"

namespace mtplan::runtime {
namespace {

TEST(ProcessMemory, GrowsByWhatIsTouchedAndRemembersItsPeak) {
  constexpr std::int64_t kBytes = std::int64_t{128} << 20;
  const ProcessMemory before = processMemory();
  EXPECT_GT(before.now, 0);
  {
    const std::vector<char> touched(static_cast<std::size_t>(kBytes), 'x');
    EXPECT_GE(processMemory().now, before.now + kBytes / 2 + touched[0]);
  }
  EXPECT_GE(processMemory().peak, before.now + kBytes / 2);
}

} // namespace
} // namespace mtplan::runtime
