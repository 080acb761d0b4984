//===- embedding.cpp - Reference kernels of lookups and positions ---------===//

#include <cmath>

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {

namespace {

/// Returns the index of the first element of the row for a global `id` in a
/// shard of a table, or -1 if the shard lacks the row.
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

/// Returns the row in a shard of the position table for local position `s`, or
/// -1 if the shard lacks the row. The table is replicated or sharded like the
/// positions.
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

/// Calls `visit(sample, element)` for every sample of a shard
/// [samples][positions][features], if the shard holds position 0. `element` is
/// the index of the first element of that position.
template <typename Visit>
void forEachFirst(const std::vector<std::int64_t> &shape, const Span &positions,
                  Visit &&visit) {
  for (std::int64_t b = 0; positions.offset == 0 && b < shape[0]; ++b)
    visit(b, b * shape[1] * shape[2]);
}

void putFirst(Call &call) {
  call.copy(0, 0);
  const std::vector<std::int64_t> &shape = call.outShape(0);
  forEachFirst(shape, call.outPiece(0, 1), [&](std::int64_t, std::int64_t at) {
    for (std::int64_t h = 0; h < shape[2]; ++h)
      call.out[0][at + h] = call.in[1][h];
  });
}

void putFirstGrad(Call &call) {
  call.copy(0, 0);
  const std::vector<std::int64_t> &shape = call.outShape(0);
  Doubles term(call.out[1].size(), 0.0);
  forEachFirst(shape, call.outPiece(0, 1), [&](std::int64_t, std::int64_t at) {
    for (std::int64_t h = 0; h < shape[2]; ++h) {
      term[h] = call.in[0][at + h];
      call.out[0][at + h] = 0.0;
    }
    call.addSample(1, term);
  });
}

void takeFirst(Call &call) {
  const std::vector<std::int64_t> &shape = call.inShape(0);
  forEachFirst(shape, call.inPiece(0, 1),
               [&](std::int64_t sample, std::int64_t at) {
                 for (std::int64_t h = 0; h < shape[2]; ++h)
                   call.out[0][sample * shape[2] + h] = call.in[0][at + h];
               });
}

void takeFirstGrad(Call &call) {
  const std::vector<std::int64_t> &shape = call.outShape(0);
  forEachFirst(shape, call.outPiece(0, 1),
               [&](std::int64_t sample, std::int64_t at) {
                 for (std::int64_t h = 0; h < shape[2]; ++h)
                   call.out[0][at + h] = call.in[0][sample * shape[2] + h];
               });
}

void rope(Call &call) {
  const std::span<const double> input = call.in[0];
  call.copy(0, 0);
  const std::int64_t rotary = call.attributes.integer("rotary_dim", 0);
  const std::int64_t width = call.attributes.integer("head_dim", 1);
  const double theta = call.attributes.number("theta", 1e4);
  const bool interleaved = call.attributes.flag("interleaved");
  const bool inverse = call.attributes.flag("inverse");
  const std::int64_t half = rotary / 2;
  const std::int64_t positions = call.inShape(0)[1];
  const std::int64_t heads = call.inShape(0)[2] / width;
  const std::int64_t rows = call.inShape(0)[0] * positions * heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t position =
        call.inPiece(0, 1).offset + row / heads % positions;
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) /
                                                   static_cast<double>(rotary));
      const double angle =
          static_cast<double>(position) * (inverse ? -frequency : frequency);
      const std::int64_t x = row * width + (interleaved ? 2 * i : i);
      const std::int64_t y = x + (interleaved ? 1 : half);
      call.out[0][x] = input[x] * std::cos(angle) - input[y] * std::sin(angle);
      call.out[0][y] = input[x] * std::sin(angle) + input[y] * std::cos(angle);
    }
  }
}

} // namespace

void addEmbedding(KernelTable &table) {
  table["embedding"] = embedding;
  table["embedding_grad"] = embeddingGrad;
  table["position_embedding"] = positionEmbedding;
  table["position_embedding_grad"] = positionEmbeddingGrad;
  table["put_first"] = putFirst;
  table["put_first_grad"] = putFirstGrad;
  table["take_first"] = takeFirst;
  table["take_first_grad"] = takeFirstGrad;
  table["rope"] = rope;
}

} // namespace mtplan::runtime::reference
