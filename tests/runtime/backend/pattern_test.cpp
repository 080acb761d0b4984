//===- pattern_test.cpp - Numbers to measure kernels on -------------------===//

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/backend/element.h"
#include "runtime/backend/memory.h"

namespace mtplan::runtime {
namespace {

/// Counts what it is given.
class Counting final : public Memory {
public:
  void *allocate(std::size_t bytes) override {
    return hostMemory().allocate(bytes);
  }
  void release(void *data, std::size_t bytes) noexcept override {
    hostMemory().release(data, bytes);
  }
  void upload(void *to, const void *from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    ++uploads;
  }
  void download(void *, const void *, std::size_t) override {}
  void fetch(void *, const void *, std::size_t) override {}
  Memory &staging() override { return hostMemory(); }
  void queueUpload(void *, const void *, std::size_t) override {}
  void queueDownload(void *, const void *, std::size_t) override {}

  int uploads = 0;
};

// An upload waits for the device: many short ones take a minute.
TEST(Pattern, IsUploadedInLongPieces) {
  constexpr std::int64_t kElements = 10'000'000;
  Counting memory;
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
  Counting memory;
  std::vector<std::int32_t> filled(1000, -1);
  Pattern(memory, ElementType::i32, 4000).fill(filled.data(), 4000);
  EXPECT_EQ(memory.uploads, 1);
  for (const std::int32_t value : filled)
    EXPECT_TRUE(value >= 0 && value < 512);
}

} // namespace
} // namespace mtplan::runtime
