//===- embedding.cpp - Reference kernels of lookups and positions ---------===//

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

/// Returns the first element of the row of a global id in a piece of a table,
/// or -1 if the piece does not hold that row.
std::int64_t rowOf(double id, const Span &rows, std::int64_t held,
                   std::int64_t width) {
  const double row = id - static_cast<double>(rows.offset);
  return row >= 0 && row < static_cast<double>(held)
             ? static_cast<std::int64_t>(row) * width
             : -1;
}

void embedding(Call &call) {
  const std::int64_t held = call.inShape(1)[0], width = call.inShape(1)[1];
  for (std::size_t t = 0; t < call.in[0].size(); ++t) {
    const std::int64_t row =
        rowOf(call.in[0][t], call.inPiece(1, 0), held, width);
    for (std::int64_t h = 0; row >= 0 && h < width; ++h)
      call.out[0][t * width + h] = call.in[1][row + h];
  }
}

void embeddingGrad(Call &call) {
  const std::int64_t held = call.outShape(0)[0], width = call.outShape(0)[1];
  const std::vector<std::int64_t> &ids = call.inShape(0);
  const std::size_t samples =
      ids.empty() ? 1 : static_cast<std::size_t>(ids[0]);
  const std::size_t tokens = call.in[0].size() / samples;
  Doubles term(call.out[0].size(), 0.0);
  for (std::size_t b = 0; b < samples; ++b) {
    for (std::size_t t = b * tokens; t < (b + 1) * tokens; ++t) {
      const std::int64_t row =
          rowOf(call.in[0][t], call.outPiece(0, 0), held, width);
      for (std::int64_t h = 0; row >= 0 && h < width; ++h)
        term[row + h] += call.in[1][t * width + h];
    }
    call.addSample(0, term);
  }
}

/// Returns the row of a piece of the table for local position `s`, or -1. A
/// table that is split together with the positions begins where they do.
std::int64_t tableRow(std::int64_t s, const Span &positions, const Span &rows,
                      std::int64_t held) {
  const std::int64_t row = s + positions.offset - rows.offset;
  return row >= 0 && row < held ? row : -1;
}

void positionEmbedding(Call &call) {
  const std::vector<std::int64_t> &shape = call.inShape(0);
  call.copy(0, 0);
  forEachIndex(shape, [&](std::size_t i, const auto &index) {
    const std::int64_t row = tableRow(index[1], call.inPiece(0, 1),
                                      call.inPiece(1, 0), call.inShape(1)[0]);
    if (row >= 0)
      call.out[0][i] += call.in[1][row * shape[2] + index[2]];
  });
}

void positionEmbeddingGrad(Call &call) {
  const std::vector<std::int64_t> &shape = call.inShape(0);
  Doubles term(call.out[0].size(), 0.0);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    forEachIndex({shape[1], shape[2]}, [&](std::size_t i, const auto &index) {
      const std::int64_t row =
          tableRow(index[0], call.inPiece(0, 1), call.outPiece(0, 0),
                   call.outShape(0)[0]);
      if (row >= 0)
        term[row * shape[2] + index[1]] +=
            call.in[0][b * shape[1] * shape[2] + i];
    });
    call.addSample(0, term);
  }
}

} // namespace

void addEmbedding(KernelTable &table) {
  table["embedding"] = embedding;
  table["embedding_grad"] = embeddingGrad;
  table["position_embedding"] = positionEmbedding;
  table["position_embedding_grad"] = positionEmbeddingGrad;
}

} // namespace mtplan::runtime::reference
