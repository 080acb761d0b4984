//===- half_test.cpp - Many halves at a time -----------------===//

#include <bit>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/communicator/half.h"

namespace mtplan::runtime {
namespace {

std::uint32_t bitsOf(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// All halves, as toFloat has them; what is no number stays none.
TEST(Halves, AreWidenedAsOneByOne) {
  std::vector<F16> halves(65536 + 3);
  for (std::size_t i = 0; i < halves.size(); ++i)
    halves[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(halves.size());
  widen(halves.data(), wide.data(), halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const float expected = toFloat(halves[i]);
    if (expected == expected)
      ASSERT_EQ(bitsOf(wide[i]), bitsOf(expected)) << i;
    else
      ASSERT_NE(wide[i], wide[i]) << i;
  }
}

// Every half, and what lies a bit beside and halfway to the next.
TEST(Halves, AreRoundedAsOneByOne) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto exact = bitsOf(toFloat(F16{static_cast<std::uint16_t>(bits)}));
    for (const int beside : {-1, 0, 1, 0x0FFF, 0x1000, 0x1001})
      values.push_back(std::bit_cast<float>(exact + beside));
  }
  std::vector<F16> halves(values.size());
  narrow(values.data(), halves.data(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(halves[i].bits, toF16(values[i]).bits) << bitsOf(values[i]);
}

} // namespace
} // namespace mtplan::runtime
