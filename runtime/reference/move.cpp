//===- move.cpp - Reference kernels that only move elements ---------------===//

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

/// Takes the elements of the result's piece out of the operand's larger piece.
void piece(Call &call) {
  const std::vector<std::int64_t> &shape = call.outShape(0);
  forEachIndex(shape, [&](std::size_t i, const auto &index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      at = at * call.inShape(0)[d] + index[d] + call.outPiece(0, d).offset -
           call.inPiece(0, d).offset;
    call.out[0][i] = call.in[0][at];
  });
}

/// Exchanges the first two of three dimensions.
void transpose(Call &call) {
  const std::vector<std::int64_t> &from = call.inShape(0);
  forEachIndex(from, [&](std::size_t i, const auto &index) {
    call.out[0][(index[1] * from[0] + index[0]) * from[2] + index[2]] =
        call.in[0][i];
  });
}

/// Takes the part of dimension `dim` at `place` among its equal parts.
void slice(Call &call) {
  const std::vector<std::int64_t> &part = call.outShape(0);
  const auto dim = static_cast<std::size_t>(call.attributes.integer("dim", 0));
  const std::int64_t place = call.attributes.integer("place", 0);
  forEachIndex(part, [&](std::size_t i, const auto &index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < part.size(); ++d)
      at =
          at * call.inShape(0)[d] + index[d] + (d == dim ? place * part[d] : 0);
    call.out[0][i] = call.in[0][at];
  });
}

/// Keeps the tensor at place 0 of an axis, and leaves zeros elsewhere.
void mask(Call &call) {
  if (call.attributes.integer("place", 0) == 0)
    call.copy(0, 0);
}

void copy(Call &call) { call.copy(0, 0); }

void zeros(Call &) {} // Results are zero when a kernel starts.

} // namespace

void addMove(KernelTable &table) {
  table["piece"] = piece;
  table["transpose"] = transpose;
  table["slice"] = slice;
  table["mask"] = mask;
  table["copy"] = copy;
  table["cast"] = copy;
  table["zeros"] = zeros;
}

} // namespace mtplan::runtime::reference
