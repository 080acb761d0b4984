//===- linear.cpp - Kernels of products and sums --------------------------===//

#include "ir/interpret/kernel.h"

namespace mtplan::ir {
namespace {

/// How far each letter steps through a tensor; 0 where it does not occur.
std::int64_t strideOf(char letter, llvm::StringRef letters,
                      const std::vector<std::int64_t> &shape) {
  const std::size_t position = letters.find(letter);
  if (position == llvm::StringRef::npos)
    return 0;
  std::int64_t stride = 1;
  for (std::size_t d = position + 1; d < shape.size(); ++d)
    stride *= shape[d];
  return stride;
}

/// Where both operands stand for one combination of some letters.
struct Offsets {
  std::vector<std::int64_t> lhs, rhs;
};

struct Letter {
  std::int64_t size, lhsStride, rhsStride;
};

/// All combinations of `letters`, the last fastest.
Offsets combine(const std::vector<Letter> &letters) {
  Offsets offsets{{0}, {0}};
  for (const Letter &letter : letters) {
    Offsets longer;
    for (std::size_t i = 0; i < offsets.lhs.size(); ++i)
      for (std::int64_t n = 0; n < letter.size; ++n) {
        longer.lhs.push_back(offsets.lhs[i] + n * letter.lhsStride);
        longer.rhs.push_back(offsets.rhs[i] + n * letter.rhsStride);
      }
    offsets = std::move(longer);
  }
  return offsets;
}

void einsum(EinsumOp op, KernelCall &call) {
  const auto [inputs, out] = op.getEquation().split("->");
  const auto [left, right] = inputs.split(',');
  const HostTensor &lhs = *call.operands[0], &rhs = *call.operands[1];
  HostTensor &result = call.results[0];

  const auto letterOf = [&, leftLetters = left,
                         rightLetters = right](char name) {
    const std::size_t inLeft = leftLetters.find(name);
    const std::int64_t size = inLeft != llvm::StringRef::npos
                                  ? lhs.shape[inLeft]
                                  : rhs.shape[rightLetters.find(name)];
    return Letter{size, strideOf(name, leftLetters, lhs.shape),
                  strideOf(name, rightLetters, rhs.shape)};
  };
  std::vector<Letter> kept, summed;
  for (char name : out)
    kept.push_back(letterOf(name));
  for (char name : left)
    if (!out.contains(name))
      summed.push_back(letterOf(name));

  const Offsets rows = combine(kept), terms = combine(summed);
  for (std::size_t i = 0; i < rows.lhs.size(); ++i) {
    const double *a = lhs.data.data() + rows.lhs[i];
    const double *b = rhs.data.data() + rows.rhs[i];
    double sum = 0.0;
    for (std::size_t t = 0; t < terms.lhs.size(); ++t)
      sum += a[terms.lhs[t]] * b[terms.rhs[t]];
    result.data[i] = sum;
  }
  if (op.getBias()) {
    const std::vector<double> &bias = call.operands[2]->data;
    for (std::size_t i = 0; i < result.data.size(); ++i)
      result.data[i] += bias[i % bias.size()];
  }
}

void sum(SumOp, KernelCall &call) {
  const std::vector<double> &input = call.operands[0]->data;
  std::vector<double> &result = call.results[0].data;
  for (std::size_t i = 0; i < input.size(); ++i)
    result[i % result.size()] += input[i];
}

} // namespace

void addLinearKernels(KernelTable &table) {
  table.add<EinsumOp>(einsum);
  table.add<SumOp>(sum);
}

} // namespace mtplan::ir
