//===- weight_part.cpp - A parameter within a tensor of a file ------------===//

#include "runtime/exchange/weight_part.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "runtime/backend/element.h"

namespace mtplan::runtime {

namespace {

// A part as a matrix: of one row where it has one dimension.
struct Matrix {
  std::int64_t rows = 1, columns = 1; ///< of the parameter
  std::int64_t first = 0; ///< of the file's tensor: the part's first element
  std::int64_t rowStep = 0, columnStep = 1; ///< there, from row to row
};

Matrix matrixOf(const WeightPart &part) {
  Matrix matrix;
  if (part.shape.size() != 2) {
    matrix.columns = part.elements();
    matrix.first = part.before; // along their only dimension
    return matrix;
  }
  matrix.rows = part.shape[0];
  matrix.columns = part.shape[1];
  const std::int64_t width = part.whole[1];
  matrix.first = part.along == 0 ? part.before * width : part.before;
  matrix.rowStep = part.transposed ? 1 : width;
  matrix.columnStep = part.transposed ? width : 1;
  return matrix;
}

// Blocks that both sides have in the first cache, so that neither is read a
// line for each element. visit(element of the parameter, of the tensor, how
// many in a row of both).
template <typename Visit> void walk(const Matrix &matrix, Visit visit) {
  if (matrix.columnStep == 1) {
    for (std::int64_t row = 0; row < matrix.rows; ++row)
      visit(row * matrix.columns, matrix.first + row * matrix.rowStep,
            matrix.columns);
    return;
  }
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t r = 0; r < matrix.rows; r += kBlock)
    for (std::int64_t c = 0; c < matrix.columns; c += kBlock)
      for (std::int64_t row = r; row < std::min(r + kBlock, matrix.rows); ++row)
        for (std::int64_t column = c;
             column < std::min(c + kBlock, matrix.columns); ++column)
          visit(row * matrix.columns + column,
                matrix.first + row * matrix.rowStep +
                    column * matrix.columnStep,
                1);
}

// With the size of an element known, copying one is one instruction.
template <std::int64_t Bytes, bool Take>
void copy(const Matrix &matrix, const std::byte *from, std::byte *to) {
  walk(matrix, [&](std::int64_t own, std::int64_t file, std::int64_t count) {
    const std::byte *source = from + (Take ? file : own) * Bytes;
    std::byte *target = to + (Take ? own : file) * Bytes;
    if (count == 1)
      std::memcpy(target, source, Bytes);
    else
      std::memcpy(target, source, static_cast<std::size_t>(count * Bytes));
  });
}

template <bool Take>
void copyAll(const WeightPart &part, std::int64_t bytes, const std::byte *from,
             std::byte *to) {
  const Matrix matrix = matrixOf(part);
  if (bytes == 2)
    copy<2, Take>(matrix, from, to);
  else if (bytes == 4)
    copy<4, Take>(matrix, from, to);
  else
    copy<8, Take>(matrix, from, to);
}

} // namespace

std::int64_t WeightPart::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

void takePart(const WeightPart &part, std::int64_t bytes, const std::byte *file,
              std::byte *own) {
  copyAll<true>(part, bytes, file, own);
}

void putPart(const WeightPart &part, std::int64_t bytes, const std::byte *own,
             std::byte *file) {
  copyAll<false>(part, bytes, own, file);
}

void convertElements(ElementType from, const std::byte *source, ElementType to,
                     std::byte *target, std::int64_t elements) {
  if (from == to) {
    std::memcpy(target, source,
                static_cast<std::size_t>(elements * bytesOf(from)));
    return;
  }
  for (std::int64_t i = 0; i < elements; ++i)
    writeElement(to, target, i, readElement(from, source, i));
}

} // namespace mtplan::runtime
