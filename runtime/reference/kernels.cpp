//===- kernels.cpp - The reference kernels --------------------------------===//

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {

void Call::addSample(std::size_t output, Doubles &term) {
  const auto rounded = [](bool rounds, double value) {
    return rounds ? static_cast<double>(static_cast<float>(value)) : value;
  };
  const bool roundsSum = !roundsSums.empty() && roundsSums[output];
  Doubles &sum = out[output];
  for (std::size_t i = 0; i < term.size(); ++i) {
    sum[i] = rounded(roundsSum, sum[i] + rounded(roundsTerms, term[i]));
    term[i] = 0.0;
  }
}

const KernelTable &kernels() {
  static const KernelTable kTable = [] {
    KernelTable all;
    addLinear(all);
    addEmbedding(all);
    addPointwise(all);
    addNorm(all);
    addAttention(all);
    addLoss(all);
    addMoe(all);
    return all;
  }();
  return kTable;
}

} // namespace mtplan::runtime::reference
