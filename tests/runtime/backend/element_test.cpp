//===- element_test.cpp - Rounding to 16 bits -------------------*- C++ -*-===//

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/backend/element.h"

using namespace mtplan::runtime;

namespace {

double through(ElementType type, double value) {
  std::uint16_t bits = 0;
  writeElement(type, &bits, 0, value);
  return readElement(type, &bits, 0);
}

// Rounds to `digits` binary digits, or to a multiple of 2^`least` if that is
// coarser.
double rounded(double value, int digits, int least) {
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - digits, least);
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

TEST(Element, RoundsToTheNearestEvenOnce) {
  // The values include numbers that are almost ties of each format. Rounding to
  // float first would make them ties.
  for (double base : {1.0, 1.0 + 0x1p-7, 3.0, 0x1p-14, 0x1p-15, 5.0e-8, 1e-3})
    for (int n = 0; n < 64; ++n)
      for (double nudge : {-0x1p-40, 0.0, 0x1p-40}) {
        const double value = base * (1.0 + n * 0x1p-12) * (1.0 + nudge);
        EXPECT_EQ(through(ElementType::bf16, value), rounded(value, 8, -133))
            << value;
        EXPECT_EQ(through(ElementType::f16, -value), -rounded(value, 11, -24))
            << value;
      }
}

TEST(Element, KeepsWhatFits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 half{static_cast<std::uint16_t>(bits)};
    const Bf16 brain{static_cast<std::uint16_t>(bits)};
    if (!std::isnan(toFloat(half))) {
      ASSERT_EQ(toF16(toFloat(half)).bits, bits);
    }
    if (!std::isnan(toFloat(brain))) {
      ASSERT_EQ(toBf16(toFloat(brain)).bits, bits);
    }
  }
}

TEST(Element, ConvertsLargestInfinityAndNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(through(ElementType::f16, 65504.0), 65504.0);
  EXPECT_EQ(through(ElementType::f16, 65519.9), 65504.0);
  EXPECT_EQ(through(ElementType::f16, 65520.0), infinity);
  EXPECT_EQ(through(ElementType::f16, 0x1p-25), 0.0); // a tie rounds to even
  EXPECT_EQ(through(ElementType::f16, 0x1.8p-25), 0x1p-24);
  EXPECT_EQ(through(ElementType::bf16, -infinity), -infinity);
  EXPECT_TRUE(std::isnan(through(ElementType::f16, std::nan(""))));
  EXPECT_TRUE(std::isnan(through(ElementType::bf16, std::nan(""))));
}

} // namespace
