//===- position.cpp - Kernels of the first position -----------------------===//

#include "ir/interpret/kernel.h"

namespace mtplan::ir {
namespace {

/// Calls `visit(sample, element)` with the first element of the first position
/// of every sample of a piece [b, s, h], if the piece has that position.
template <typename Visit>
void forEachFirst(const HostTensor &tensor, const Span &positions,
                  Visit &&visit) {
  if (positions.offset != 0)
    return;
  const std::int64_t rows = tensor.shape[1] * tensor.shape[2];
  for (std::int64_t b = 0; b < tensor.shape[0]; ++b)
    visit(b, b * rows);
}

void putFirst(PutFirstOp, KernelCall &call) {
  HostTensor &result = call.results[0];
  const HostTensor &vector = *call.operands[1];
  result.data = call.operands[0]->data;
  forEachFirst(result, call.resultSpans[0][1],
               [&](std::int64_t, std::int64_t element) {
                 for (std::int64_t h = 0; h < result.shape[2]; ++h)
                   result.data[element + h] = vector.data[h];
               });
}

void putFirstGrad(PutFirstGradOp, KernelCall &call) {
  HostTensor &rest = call.results[0], &vector = call.results[1];
  rest.data = call.operands[0]->data;
  forEachFirst(rest, call.resultSpans[0][1],
               [&](std::int64_t, std::int64_t element) {
                 for (std::int64_t h = 0; h < rest.shape[2]; ++h) {
                   vector.data[h] += rest.data[element + h];
                   rest.data[element + h] = 0.0;
                 }
               });
}

void takeFirst(TakeFirstOp, KernelCall &call) {
  const HostTensor &input = *call.operands[0];
  const std::int64_t width = input.shape[2];
  forEachFirst(input, call.operandSpans[0][1],
               [&](std::int64_t sample, std::int64_t element) {
                 for (std::int64_t h = 0; h < width; ++h)
                   call.results[0].data[sample * width + h] =
                       input.data[element + h];
               });
}

void takeFirstGrad(TakeFirstGradOp, KernelCall &call) {
  HostTensor &result = call.results[0];
  const std::int64_t width = result.shape[2];
  forEachFirst(result, call.resultSpans[0][1],
               [&](std::int64_t sample, std::int64_t element) {
                 for (std::int64_t h = 0; h < width; ++h)
                   result.data[element + h] =
                       call.operands[0]->data[sample * width + h];
               });
}

void zeros(ZerosOp, KernelCall &) {} // as results come

} // namespace

void addPositionKernels(KernelTable &table) {
  table.add<PutFirstOp>(putFirst);
  table.add<PutFirstGradOp>(putFirstGrad);
  table.add<TakeFirstOp>(takeFirst);
  table.add<TakeFirstGradOp>(takeFirstGrad);
  table.add<ZerosOp>(zeros);
}

} // namespace mtplan::ir
