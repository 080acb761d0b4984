//===- loss.cpp - Kernels of the cross entropy ----------------------------===//

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/interpret/kernel.h"

namespace mtplan::ir {
namespace {

/// The classes of a piece of the logits: where it begins in the vocabulary,
/// how long a row is and how much of that is not padding.
struct Classes {
  std::int64_t offset, width, real;

  Classes(const HostTensor &logits, const std::vector<Span> &spans,
          std::int64_t classes)
      : offset(spans.back().offset), width(logits.shape.back()),
        real(std::clamp<std::int64_t>(classes - offset, 0, width)) {}

  /// The element of a row that is `target`'s, or -1.
  std::int64_t find(double target) const {
    const double local = target - static_cast<double>(offset);
    return target >= 0 && local >= 0 && local < static_cast<double>(width)
               ? static_cast<std::int64_t>(local)
               : -1;
  }
};

void vocabMax(VocabMaxOp op, KernelCall &call) {
  const HostTensor &logits = *call.operands[0];
  const Classes classes(logits, call.operandSpans[0], op.getClasses());
  std::vector<double> &result = call.results[0].data;
  for (std::size_t t = 0; t < result.size(); ++t) {
    // A piece of padding only has the neutral element of the reduction.
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t v = 0; v < classes.real; ++v) {
      const double logit = logits.data[t * classes.width + v];
      if (logit > largest || std::isnan(logit))
        largest = logit;
    }
    result[t] = largest;
  }
}

void vocabSumExp(VocabSumExpOp op, KernelCall &call) {
  const HostTensor &logits = *call.operands[0];
  const Classes classes(logits, call.operandSpans[0], op.getClasses());
  std::vector<double> &result = call.results[0].data;
  for (std::size_t t = 0; t < result.size(); ++t)
    for (std::int64_t v = 0; v < classes.real; ++v)
      result[t] += std::exp(logits.data[t * classes.width + v] -
                            call.operands[1]->data[t]);
}

void vocabPick(VocabPickOp, KernelCall &call) {
  const HostTensor &logits = *call.operands[0];
  const Classes classes(logits, call.operandSpans[0],
                        call.operandSpans[0].back().global);
  std::vector<double> &result = call.results[0].data;
  for (std::size_t t = 0; t < result.size(); ++t)
    if (const std::int64_t v = classes.find(call.operands[1]->data[t]); v >= 0)
      result[t] = logits.data[t * classes.width + v];
}

void tokenLoss(TokenLossOp, KernelCall &call) {
  const std::vector<double> &maximum = call.operands[0]->data;
  const std::vector<double> &sumExp = call.operands[1]->data;
  const std::vector<double> &picked = call.operands[2]->data;
  const std::vector<double> &targets = call.operands[3]->data;
  double sum = 0.0;
  for (std::size_t t = 0; t < targets.size(); ++t)
    if (targets[t] >= 0)
      sum += std::log(sumExp[t]) + maximum[t] - picked[t];
  call.results[0].data[0] = sum / call.operands[4]->data[0];
}

void crossEntropyGrad(CrossEntropyGradOp op, KernelCall &call) {
  const HostTensor &logits = *call.operands[0];
  const Classes classes(logits, call.operandSpans[0], op.getClasses());
  const std::vector<double> &maximum = call.operands[1]->data;
  const std::vector<double> &sumExp = call.operands[2]->data;
  const std::vector<double> &targets = call.operands[3]->data;
  const double count = call.operands[4]->data[0];
  std::vector<double> &result = call.results[0].data;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0)
      continue;
    const std::int64_t target = classes.find(targets[t]);
    for (std::int64_t v = 0; v < classes.real; ++v) {
      const std::size_t i = t * classes.width + v;
      const double probability =
          std::exp(logits.data[i] - maximum[t]) / sumExp[t];
      result[i] = (probability - (v == target ? 1.0 : 0.0)) / count;
    }
  }
}

} // namespace

void addLossKernels(KernelTable &table) {
  table.add<VocabMaxOp>(vocabMax);
  table.add<VocabSumExpOp>(vocabSumExp);
  table.add<VocabPickOp>(vocabPick);
  table.add<TokenLossOp>(tokenLoss);
  table.add<CrossEntropyGradOp>(crossEntropyGrad);
}

} // namespace mtplan::ir
