//===- transpose.cpp - Transposition of a matrix --------------------------===//

#include "runtime/cpu/transpose.h"

#include <cstring>

#include "runtime/backend/element.h"
#include "runtime/cpu/simd.h"

namespace mtplan::runtime::cpu {

namespace {

constexpr std::int64_t kBlock = 16;

template <typename T> struct Row {
  using Type [[gnu::vector_size(kBlock * sizeof(T))]] = T;
};

/// Interleaves rows i and i + 8 into rows 2 i and 2 i + 1. After four rounds
/// the row and column of every element are exchanged.
template <typename V> MTPLAN_INLINE void transposeBlock(V (&rows)[kBlock]) {
  for (int time = 0; time < 4; ++time) {
    V mixed[kBlock];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const V low = rows[i], high = rows[i + 8];
      mixed[2 * i] = __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3,
                                             19, 4, 20, 5, 21, 6, 22, 7, 23);
      mixed[2 * i + 1] =
          __builtin_shufflevector(low, high, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                  28, 13, 29, 14, 30, 15, 31);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kBlock; ++i)
      rows[i] = mixed[i];
  }
}

template <typename T>
MTPLAN_INLINE void transposeAny(const T *from, std::int64_t stride,
                                std::int64_t rows, std::int64_t columns,
                                T *to) {
  using V = typename Row<T>::Type;
  const std::int64_t wholeRows = rows / kBlock * kBlock;
  const std::int64_t wholeColumns = columns / kBlock * kBlock;
  for (std::int64_t column = 0; column < wholeColumns; column += kBlock)
    for (std::int64_t row = 0; row < wholeRows; row += kBlock) {
      V block[kBlock];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kBlock; ++i)
        std::memcpy(&block[i], from + (row + i) * stride + column, sizeof(V));
      transposeBlock(block);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kBlock; ++i)
        std::memcpy(to + (column + i) * rows + row, &block[i], sizeof(V));
    }
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = row < wholeRows ? wholeColumns : 0;
         column < columns; ++column)
      to[column * rows + row] = from[row * stride + column];
}

} // namespace

MTPLAN_CLONES void transposeOf(const std::uint16_t *from, std::int64_t stride,
                               std::int64_t rows, std::int64_t columns,
                               std::uint16_t *to) {
  transposeAny(from, stride, rows, columns, to);
}
MTPLAN_CLONES void transposeOf(const std::uint32_t *from, std::int64_t stride,
                               std::int64_t rows, std::int64_t columns,
                               std::uint32_t *to) {
  transposeAny(from, stride, rows, columns, to);
}

void transpose(ElementType type, const void *from, std::int64_t stride,
               std::int64_t rows, std::int64_t columns, void *to) {
  if (bytesOf(type) == 2)
    transposeOf(static_cast<const std::uint16_t *>(from), stride, rows, columns,
                static_cast<std::uint16_t *>(to));
  else
    transposeOf(static_cast<const std::uint32_t *>(from), stride, rows, columns,
                static_cast<std::uint32_t *>(to));
}

} // namespace mtplan::runtime::cpu
