//===- mask_test.cpp - What a device draws is what the stream has ---------===//

#include <gtest/gtest.h>

#include "runtime/cuda/device/mask.cuh"
#include "tests/emulator/device.h"

namespace mtplan::runtime {
namespace {

/// The mask of a moment, as a kernel gets it.
struct Masked {
  Masked(const Moment &moment, const char *name, double rate)
      : numbers{moment.seed, moment.step, moment.drops, {}, {}},
        mask(cuda::Masks(&numbers, name, moment.copy, rate).now()) {}

  StepNumbers numbers;
  cuda::Mask mask;
};

TEST(CudaMask, DrawsTheWordsOfTheStream) {
  const Moment moment{(std::uint64_t{9} << 40) + 7, 3, 2, 5};
  const Stream stream = Stream::ofMask(moment, "h.*.attn.drop");
  const cuda::Mask mask = Masked(moment, "h.*.attn.drop", 0.3).mask;
  for (const std::int64_t index :
       {std::int64_t{0}, std::int64_t{1}, (std::int64_t{1} << 32) - 1,
        std::int64_t{1} << 32, (std::int64_t{5} << 40) + 3}) {
    const PhiloxCounter expected = stream.wordsAt(index);
    const auto words = mask.wordsOf(static_cast<std::uint64_t>(index));
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(words[i], expected[static_cast<std::size_t>(i)]) << index;
  }
}

// Also where a pack does not begin with a draw.
TEST(CudaMask, GivesEachElementItsFactor) {
  const Moment moment{11, 3, 2, 5};
  const Stream stream = Stream::ofMask(moment, "embed.drop");
  for (const double rate : {0.0, 0.1, 0.5})
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

} // namespace
} // namespace mtplan::runtime
