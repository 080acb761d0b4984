//===- tensor_core_test.cpp - Emulated tensor cores -----------------------===//

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/emulator/device.h"

namespace mtplan::runtime::cuda {
namespace {

template <typename T> std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(static_cast<T>(normal(random)));
  return all;
}

template <typename T> std::uint32_t pairAt(const T &low, const T &high) {
  return std::uint32_t{std::bit_cast<std::uint16_t>(low)} |
         std::uint32_t{std::bit_cast<std::uint16_t>(high)} << 16;
}

// The rows and columns of fragment elements a0 ... a7 (two per register),
// b0 ... b3 and c0 ... c3 are those of the PTX ISA.
template <typename T> void expectProductOfFragments() {
  const std::vector<T> a = numbers<T>(16 * 16, 1), b = numbers<T>(16 * 8, 2);
  std::vector<float> c(16 * 8, 0.5F);
  emulator::run(dim3(1), dim3(32), [&] {
    const unsigned lane = emulator::laneHere();
    const unsigned group = lane >> 2, inGroup = lane % 4;
    const auto aAt = [&](unsigned i) {
      const unsigned row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      return a[row * 16 + inGroup * 2 + (i & 1) + (i >= 4 ? 8 : 0)];
    };
    const auto bAt = [&](unsigned i) {
      const unsigned row = inGroup * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      return b[row * 8 + group];
    };
    const auto cAt = [&](unsigned i) -> float & {
      return c[(i < 2 ? group : group + 8) * 8 + inGroup * 2 + (i & 1)];
    };
    float sums[4] = {cAt(0), cAt(1), cAt(2), cAt(3)};
    multiplyAdd<T>(sums,
                   {pairAt(aAt(0), aAt(1)), pairAt(aAt(2), aAt(3)),
                    pairAt(aAt(4), aAt(5)), pairAt(aAt(6), aAt(7))},
                   pairAt(bAt(0), bAt(1)), pairAt(bAt(2), bAt(3)));
    for (unsigned i = 0; i < 4; ++i)
      cAt(i) = sums[i];
  });
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t column = 0; column < 8; ++column) {
      double sum = 0.5;
      for (std::size_t k = 0; k < 16; ++k)
        sum += double{static_cast<float>(a[row * 16 + k])} *
               double{static_cast<float>(b[k * 8 + column])};
      EXPECT_NEAR(c[row * 8 + column], sum, 1e-5) << row << ", " << column;
    }
}

TEST(TensorCores, MultiplyFragmentsAsPtxLaysThemOut) {
  expectProductOfFragments<__nv_bfloat16>();
  expectProductOfFragments<__half>();
}

TEST(TensorCores, LoadMatricesByRowsAndTransposed) {
  alignas(16) std::uint16_t data[32][8];
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 8; ++column)
      data[row][column] = static_cast<std::uint16_t>(row * 8 + column);
  emulator::run(dim3(1), dim3(32), [&] {
    const unsigned lane = emulator::laneHere(), g = lane / 4, t = lane % 4;
    std::uint32_t rows[4], columns[4];
    loadMatrices<false>(rows, data[lane]);
    loadMatrices<true>(columns, data[lane]);
    for (unsigned m = 0; m < 4; ++m) {
      const unsigned byRow = (m * 8 + g) * 8 + t * 2,
                     byColumn = (m * 8 + t * 2) * 8 + g;
      EXPECT_EQ(rows[m], byRow | (byRow + 1) << 16);
      EXPECT_EQ(columns[m], byColumn | (byColumn + 8) << 16);
    }
  });
}

// The destination is NaN until a thread waits for the copy, so an early read
// yields NaN.
TEST(TensorCores, CopiesCompleteWhenTheyAreWaitedFor) {
  alignas(16) float from[4] = {1, 2, 3, 4}, to[8] = {};
  emulator::run(dim3(1), dim3(1), [&] {
    beginCopy<16>(to, from, true);
    beginCopy<8>(to + 4, from, false);
    EXPECT_TRUE(std::isnan(to[0]));
    EXPECT_TRUE(std::isnan(to[4]));
    endCopies();
    EXPECT_EQ(to[3], 4.0F);
    EXPECT_EQ(to[5], 0.0F);
  });
  EXPECT_THROW(emulator::run(dim3(1), dim3(1),
                             [&] { beginCopy<16>(to + 1, from, true); }),
               std::logic_error);
}

} // namespace
} // namespace mtplan::runtime::cuda
