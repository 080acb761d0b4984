//===- reduce_test.cpp - Conversion of many halves ------------------------===//

#include <bit>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/communicator/reduce.h"

namespace mtplan::runtime {
namespace {

std::uint32_t bitsOf(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// widen() and toFloat() give the same float for each half, and NaN for NaN.
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

// The values are every half, the midpoint between it and the next half, and the
// floats beside both.
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
