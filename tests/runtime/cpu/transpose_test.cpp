//===- transpose_test.cpp - Transposition of a matrix -----------*- C++ -*-===//

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cpu/matrix_product.h"

namespace mtplan::runtime::cpu {
namespace {

template <typename T> class Transpose : public testing::Test {};
using Widths = testing::Types<std::uint16_t, std::uint32_t>;
TYPED_TEST_SUITE(Transpose, Widths);

TYPED_TEST(Transpose, ChangesRowsAndColumns) {
  constexpr ElementType kType =
      sizeof(TypeParam) == 2 ? ElementType::bf16 : ElementType::f32;
  for (std::int64_t rows : {1, 15, 16, 33, 64})
    for (std::int64_t columns : {1, 7, 16, 48, 50}) {
      const std::int64_t stride = columns + 3;
      std::vector<TypeParam> from(static_cast<std::size_t>(rows * stride));
      std::iota(from.begin(), from.end(), TypeParam(1));
      // The last element must not be written.
      std::vector<TypeParam> to(static_cast<std::size_t>(rows * columns + 1));
      transpose(kType, from.data(), stride, rows, columns, to.data());
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t column = 0; column < columns; ++column)
          EXPECT_EQ(to[static_cast<std::size_t>(column * rows + row)],
                    from[static_cast<std::size_t>(row * stride + column)])
              << rows << " x " << columns << ", at " << row << ", " << column;
      EXPECT_EQ(to.back(), 0);
    }
}

} // namespace
} // namespace mtplan::runtime::cpu
