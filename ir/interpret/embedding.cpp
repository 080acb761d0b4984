//===- embedding.cpp - Kernels of lookups and learned positions -----------===//

#include "ir/interpret/kernel.h"

namespace mtplan::ir {
namespace {

/// Row of a piece of a table that holds global row `id`, or -1.
std::int64_t localRow(double id, const Span &rows, std::int64_t held) {
  const double row = id - static_cast<double>(rows.offset);
  return row >= 0 && row < static_cast<double>(held)
             ? static_cast<std::int64_t>(row)
             : -1;
}

void embedding(EmbeddingOp, KernelCall &call) {
  const HostTensor &ids = *call.operands[0], &table = *call.operands[1];
  const std::int64_t width = table.shape[1];
  for (std::size_t t = 0; t < ids.data.size(); ++t) {
    const std::int64_t row =
        localRow(ids.data[t], call.operandSpans[1][0], table.shape[0]);
    for (std::int64_t h = 0; row >= 0 && h < width; ++h)
      call.results[0].data[t * width + h] = table.data[row * width + h];
  }
}

void embeddingGrad(EmbeddingGradOp, KernelCall &call) {
  const HostTensor &ids = *call.operands[0], &gradient = *call.operands[1];
  HostTensor &table = call.results[0];
  const std::int64_t width = table.shape[1];
  for (std::size_t t = 0; t < ids.data.size(); ++t) {
    const std::int64_t row =
        localRow(ids.data[t], call.resultSpans[0][0], table.shape[0]);
    for (std::int64_t h = 0; row >= 0 && h < width; ++h)
      table.data[row * width + h] += gradient.data[t * width + h];
  }
}

/// Calls `visit(element, tableElement)` for every element of a tensor
/// [b, s, h] and the element of the piece of the table [p, h] that belongs to
/// its position. A table that is split along with the positions begins where
/// they do; a whole one begins at 0.
template <typename Visit>
void forEachPosition(const HostTensor &tensor, const Span &positions,
                     const HostTensor &table, const Span &rows, Visit &&visit) {
  const std::int64_t width = tensor.shape[2];
  const std::int64_t shift = positions.offset - rows.offset;
  for (std::int64_t b = 0; b < tensor.shape[0]; ++b)
    for (std::int64_t s = 0; s < tensor.shape[1]; ++s) {
      const std::int64_t row = s + shift;
      for (std::int64_t h = 0; row >= 0 && row < table.shape[0] && h < width;
           ++h)
        visit((b * tensor.shape[1] + s) * width + h, row * width + h);
    }
}

void positionEmbedding(PositionEmbeddingOp, KernelCall &call) {
  const HostTensor &input = *call.operands[0], &table = *call.operands[1];
  HostTensor &result = call.results[0];
  result.data = input.data;
  forEachPosition(input, call.operandSpans[0][1], table,
                  call.operandSpans[1][0],
                  [&](std::int64_t element, std::int64_t tableElement) {
                    result.data[element] += table.data[tableElement];
                  });
}

void positionEmbeddingGrad(PositionEmbeddingGradOp, KernelCall &call) {
  const HostTensor &gradient = *call.operands[0];
  HostTensor &table = call.results[0];
  forEachPosition(gradient, call.operandSpans[0][1], table,
                  call.resultSpans[0][0],
                  [&](std::int64_t element, std::int64_t tableElement) {
                    table.data[tableElement] += gradient.data[element];
                  });
}

} // namespace

void addEmbeddingKernels(KernelTable &table) {
  table.add<EmbeddingOp>(embedding);
  table.add<EmbeddingGradOp>(embeddingGrad);
  table.add<PositionEmbeddingOp>(positionEmbedding);
  table.add<PositionEmbeddingGradOp>(positionEmbeddingGrad);
}

} // namespace mtplan::ir
