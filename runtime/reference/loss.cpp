//===- loss.cpp - Reference kernels of the cross entropy ------------------===//

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

/// Describes the classes in a shard of the logits: the first class (`offset`),
/// the number of classes (`width`), and their number without padding (`real`).
struct Classes {
  std::int64_t offset, width, real;

  explicit Classes(const Call &call)
      : offset(call.inPiece(0, call.inShape(0).size() - 1).offset),
        width(call.inShape(0).back()),
        real(std::clamp<std::int64_t>(
            call.attributes.integer("classes",
                                    std::numeric_limits<std::int64_t>::max()) -
                offset,
            0, width)) {}

  /// Returns the index of class `target` in a row, or -1 if this shard lacks
  /// the class.
  std::int64_t find(double target) const {
    const double local = target - static_cast<double>(offset);
    return target >= 0 && local >= 0 && local < static_cast<double>(width)
               ? static_cast<std::int64_t>(local)
               : -1;
  }
};

void vocabMax(Call &call) {
  const Classes classes(call);
  for (std::size_t t = 0; t < call.out[0].size(); ++t) {
    // For a shard that has only padding, the result is minus infinity, the
    // neutral element of max.
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t v = 0; v < classes.real; ++v) {
      const double logit = call.in[0][t * classes.width + v];
      if (logit > largest || std::isnan(logit))
        largest = logit;
    }
    call.out[0][t] = largest;
  }
}

void vocabSumExp(Call &call) {
  const Classes classes(call);
  for (std::size_t t = 0; t < call.out[0].size(); ++t)
    for (std::int64_t v = 0; v < classes.real; ++v)
      call.out[0][t] +=
          std::exp(call.in[0][t * classes.width + v] - call.in[1][t]);
}

void vocabPick(Call &call) {
  const Classes classes(call);
  for (std::size_t t = 0; t < call.out[0].size(); ++t)
    if (const std::int64_t v = classes.find(call.in[1][t]); v >= 0)
      call.out[0][t] = call.in[0][t * classes.width + v];
}

void tokenLoss(Call &call) {
  const std::vector<std::int64_t> &shape = call.inShape(0);
  const std::size_t tokens = call.in[3].size();
  const std::size_t sample =
      shape.empty() ? 1 : tokens / static_cast<std::size_t>(shape[0]);
  for (std::size_t first = 0; first < tokens; first += sample) {
    Doubles term(1, 0.0);
    for (std::size_t t = first; t < first + sample; ++t)
      if (call.in[3][t] >= 0)
        term[0] += std::log(call.in[1][t]) + call.in[0][t] - call.in[2][t];
    term[0] /= call.in[4][0];
    call.addSample(0, term);
  }
}

void crossEntropyGrad(Call &call) {
  const Classes classes(call);
  const std::span<const double> maximum = call.in[1], sumExp = call.in[2],
                                targets = call.in[3];
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0)
      continue;
    const std::int64_t target = classes.find(targets[t]);
    for (std::int64_t v = 0; v < classes.real; ++v) {
      const std::size_t i = t * classes.width + v;
      const double probability =
          std::exp(call.in[0][i] - maximum[t]) / sumExp[t];
      call.out[0][i] =
          (probability - (v == target ? 1.0 : 0.0)) / call.in[4][0];
    }
  }
}

} // namespace

void addLoss(KernelTable &table) {
  table["vocab_max"] = vocabMax;
  table["vocab_sum_exp"] = vocabSumExp;
  table["vocab_pick"] = vocabPick;
  table["token_loss"] = tokenLoss;
  table["cross_entropy_grad"] = crossEntropyGrad;
}

} // namespace mtplan::runtime::reference
