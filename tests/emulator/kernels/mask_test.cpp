//===- mask_test.cpp - Dropout masks drawn on the device ------------------===//

#include <gtest/gtest.h>

// device.h must come before the kernels that it emulates.
// clang-format off
#include "tests/emulator/device.h"
#include "runtime/cuda/device/core_masks.cuh"
// clang-format on

namespace mtplan::runtime {
namespace {

/// Holds a mask as a kernel receives it, and the step numbers it refers to.
struct Masked {
  Masked(const Moment &moment, const char *name, double rate)
      : numbers{moment.seed, moment.step, moment.drops, {}, {}},
        mask(cuda::Masks(&numbers, name, moment.copy, rate).now()) {}

  StepNumbers numbers;
  cuda::Mask mask;
};

TEST(CudaMask, DrawsTheRandomWordsOfTheHost) {
  const Moment moment{(std::uint64_t{9} << 40) + 7, 3, 2, 5};
  const Stream stream = Stream::ofMask(moment, "h.*.attn.drop");
  const cuda::Mask mask = Masked(moment, "h.*.attn.drop", 0.3).mask;
  for (const std::int64_t index :
       {std::int64_t{0}, std::int64_t{1}, (std::int64_t{1} << 32) - 1,
        std::int64_t{1} << 32, (std::int64_t{5} << 40) + 3}) {
    const PhiloxCounter expected = stream.maskWordsAt(index);
    const auto words = mask.wordsOf(static_cast<std::uint64_t>(index));
    EXPECT_EQ(words, expected) << index;
  }
}

// A pack is the elements that a thread handles at once. It may begin in the
// middle of a random draw.
TEST(CudaMask, GivesEachElementItsFactor) {
  const Moment moment{11, 3, 2, 5};
  const Stream stream = Stream::ofMask(moment, "embed.drop");
  for (const double rate : {0.0, 0.1, 0.5, 0.99})
    for (const std::int64_t first :
         {std::int64_t{0}, std::int64_t{5}, std::int64_t{1} << 35}) {
      const cuda::Mask mask = Masked(moment, "embed.drop", rate).mask;
      double pack[cuda::kPack];
      std::fill_n(pack, cuda::kPack, 2.0);
      mask.apply(first, pack);
      for (int i = 0; i < cuda::kPack; ++i) {
        const double expected = maskValue(stream, rate, first + i);
        EXPECT_EQ(mask.at<double>(first + i), expected);
        EXPECT_EQ(pack[i], 2.0 * expected);
      }
    }
}

// The kernel compares the bits as 16-bit floats, including subnormals, infinity
// and NaN.
TEST(CudaMask, ComparesTwoElementsAtOnce) {
  for (const std::uint32_t limit :
       {0U, 1U, 0x3FFU, 0x400U, 3277U, 0x4000U, 0x7BFFU, 0x7C00U}) {
    ASSERT_LE(limit, cuda::kMostLimitOnCores);
    for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
      const std::uint32_t other = (bits * 40503U + 977U) & 0xFFFF;
      const auto kept = [&](std::uint32_t half) {
        return (half & kMaskBits) >= limit ? 0xFFFFU : 0U;
      };
      const cuda::KeptPair pair(bits | other << 16, limit);
      float low = 1.0F, high = 1.0F;
      pair.zeroDropped(low, high);
      ASSERT_EQ(pair.mask(), kept(bits) | kept(other) << 16)
          << bits << ", " << other << " and " << limit;
      ASSERT_EQ(low != 0.0F, kept(bits) != 0) << bits << " and " << limit;
      ASSERT_EQ(high != 0.0F, kept(other) != 0) << other << " and " << limit;
    }
  }
}

} // namespace
} // namespace mtplan::runtime
