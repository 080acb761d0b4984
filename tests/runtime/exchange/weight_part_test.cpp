//===- weight_part_test.cpp - Parameters within tensors of files ----------===//

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "runtime/exchange/weight_part.h"

namespace mtplan::runtime {
namespace {

using Shape = std::vector<std::int64_t>;

template <typename T> std::vector<std::byte> bytesOfAll(std::vector<T> all) {
  std::vector<std::byte> bytes(all.size() * sizeof(T));
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

std::uint16_t rounded(double value, ElementType type) {
  std::uint16_t bits = 0;
  convertElements(ElementType::f64, reinterpret_cast<std::byte *>(&value), type,
                  reinterpret_cast<std::byte *>(&bits), 1);
  return bits;
}

// The first value of each type is slightly above a tie, and the second is the
// tie, which rounds down to even. Rounding the first to float would make it the
// tie.
TEST(WeightPart, DoublesAreRoundedOnce) {
  EXPECT_EQ(rounded(1 + 0x1p-8 + 0x1p-40, ElementType::bf16), 0x3F81);
  EXPECT_EQ(rounded(1 + 0x1p-8, ElementType::bf16), 0x3F80);
  EXPECT_EQ(rounded(1 + 0x1p-11 + 0x1p-40, ElementType::f16), 0x3C01);
  EXPECT_EQ(rounded(1 + 0x1p-11, ElementType::f16), 0x3C00);
}

TEST(WeightPart, HalvesWidenExactly) {
  const std::vector<std::uint16_t> half = {0x3C01, 0x0001, 0xFC00};
  std::vector<double> wide(3);
  convertElements(
      ElementType::f16, reinterpret_cast<const std::byte *>(half.data()),
      ElementType::f64, reinterpret_cast<std::byte *>(wide.data()), 3);
  EXPECT_EQ(wide, (std::vector<double>{1 + 0x1p-10, 0x1p-24, -INFINITY}));
}

// The tensor is transposed in several blocks, and its sides are not multiples
// of a block's sides.
TEST(WeightPart, TransposesThereAndBack) {
  constexpr std::int64_t kIn = 40, kOut = 70, kBefore = 5;
  const WeightPart part{{kBefore + kOut, kIn}, {kIn, kOut}, true, 0, kBefore};
  std::vector<std::int32_t> file((kBefore + kOut) * kIn);
  std::iota(file.begin(), file.end(), 0);
  std::vector<std::int32_t> own(kIn * kOut), again(file.size(), -1);
  extractPart(part, 4, reinterpret_cast<std::byte *>(file.data()),
              reinterpret_cast<std::byte *>(own.data()));
  for (std::int64_t i = 0; i < kIn; ++i)
    for (std::int64_t o = 0; o < kOut; ++o)
      ASSERT_EQ(own[static_cast<std::size_t>(i * kOut + o)],
                (kBefore + o) * kIn + i);
  insertPart(part, 4, reinterpret_cast<std::byte *>(own.data()),
             reinterpret_cast<std::byte *>(again.data()));
  std::fill_n(file.begin(), kBefore * kIn, -1); // rows of another parameter
  EXPECT_EQ(again, file);
}

/// Provides a model of the parameters a = [[1, 2]] and b = [[3, 4, 5]].
class TwoOfOtherWidths final : public WeightSource {
public:
  TwoOfOtherWidths() {
    all["a"] = {StateKind::weight, ElementType::f32, {1, 2}};
    all["b"] = {StateKind::weight, ElementType::f32, {1, 3}};
  }
  std::string what() const override { return "two"; }
  std::string model() const override { return "two"; }
  std::int64_t bytes() const override { return 20; }
  std::vector<std::byte> read(const std::string &name) const override {
    return bytesOfAll(name == "a" ? std::vector<float>{1, 2}
                                  : std::vector<float>{3, 4, 5});
  }
  bool hasOther(const std::string & /*name*/) const override { return false; }
  std::vector<std::byte>
  readOther(const std::string & /*name*/) const override {
    return {};
  }
};

TEST(MadeTensor, PartsMayHaveDifferentLengths) {
  const TwoOfOtherWidths source;
  const std::vector<std::byte> made = bytesOfAll<float>({1, 2, 3, 4, 5});
  const WeightRule below{"ab", "", {"a", "b"}, true, 0}; // [5, 1]
  EXPECT_EQ(madeShape(source, below), (Shape{5, 1}));
  EXPECT_EQ(madeTensor(source, below, ElementType::f32), made);
  const WeightRule beside{"ab", "", {"a", "b"}, false, 1}; // [1, 5]
  EXPECT_EQ(madeShape(source, beside), (Shape{1, 5}));
  EXPECT_EQ(madeTensor(source, beside, ElementType::f32), made);
}

} // namespace
} // namespace mtplan::runtime
