//===- pattern_test.cpp - Numbers to measure kernels on -------------------===//

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/backend/element.h"
#include "runtime/backend/memory.h"
#include "tests/runtime/backend/counting_memory.h"

namespace mtplan::runtime {
namespace {

// An upload waits for the device, so many short uploads would take a minute.
TEST(Pattern, IsUploadedInLongPieces) {
  constexpr std::int64_t kElements = 10'000'000;
  CountingMemory memory;
  std::vector<Bf16> filled(kElements + 1);
  filled[kElements].bits = 0x1234;
  Pattern(memory, ElementType::bf16, 2 * kElements)
      .fill(filled.data(), 2 * kElements);
  EXPECT_EQ(memory.uploads, 3);
  EXPECT_EQ(filled[kElements].bits, 0x1234);
  std::int64_t zeros = 0, unlike = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    zeros += toFloat(filled[i]) == 0.0F;
    unlike += std::abs(toFloat(filled[i])) > 0.505F ||
              (i >= 8191 && filled[i].bits != filled[i - 8191].bits);
  }
  EXPECT_EQ(unlike, 0);
  EXPECT_LT(zeros, kElements / 1000);
}

TEST(Pattern, OfIntegersIsBelowEveryLimit) {
  CountingMemory memory;
  std::vector<std::int32_t> filled(1000, -1);
  Pattern(memory, ElementType::i32, 4000).fill(filled.data(), 4000);
  EXPECT_EQ(memory.uploads, 1);
  for (const std::int32_t value : filled)
    EXPECT_TRUE(value >= 0 && value < 512);
}

} // namespace
} // namespace mtplan::runtime
