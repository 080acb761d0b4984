//===- linear.cpp - Reference kernels of products and sums ----------------===//

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {
namespace {

/// Holds the letters of an einsum such as "bsi,io->bso".
struct Equation {
  std::string lhs, rhs, result;

  explicit Equation(const std::string &text) {
    const std::size_t comma = text.find(','), arrow = text.find("->");
    lhs = text.substr(0, comma);
    rhs = text.substr(comma + 1, arrow - comma - 1);
    result = text.substr(arrow + 2);
  }
};

/// Returns the stride of a letter in elements, or 0 if the tensor lacks the
/// letter.
std::size_t strideOf(char letter, const std::string &letters,
                     const std::vector<std::int64_t> &shape) {
  const std::size_t position = letters.find(letter);
  if (position == std::string::npos)
    return 0;
  std::size_t stride = 1;
  for (std::size_t d = position + 1; d < shape.size(); ++d)
    stride *= static_cast<std::size_t>(shape[d]);
  return stride;
}

struct Letter {
  std::size_t size, lhsStride, rhsStride;
};

struct Offsets {
  std::vector<std::size_t> lhs, rhs;
};

/// Returns the offsets for all values of `letters`. The last letter varies
/// fastest.
Offsets combine(const std::vector<Letter> &letters) {
  Offsets offsets{{0}, {0}};
  for (const Letter &letter : letters) {
    Offsets longer;
    for (std::size_t i = 0; i < offsets.lhs.size(); ++i)
      for (std::size_t n = 0; n < letter.size; ++n) {
        longer.lhs.push_back(offsets.lhs[i] + n * letter.lhsStride);
        longer.rhs.push_back(offsets.rhs[i] + n * letter.rhsStride);
      }
    offsets = std::move(longer);
  }
  return offsets;
}

void einsum(Call &call) {
  const Equation equation(call.attributes.text("equation"));
  const auto &left = call.inShape(0), &right = call.inShape(1);
  const auto letterOf = [&](char name) {
    const std::size_t inLeft = equation.lhs.find(name);
    const std::int64_t size = inLeft != std::string::npos
                                  ? left[inLeft]
                                  : right[equation.rhs.find(name)];
    return Letter{static_cast<std::size_t>(size),
                  strideOf(name, equation.lhs, left),
                  strideOf(name, equation.rhs, right)};
  };
  std::vector<Letter> kept, summed;
  Letter samples{1, 0, 0};
  for (char name : equation.result)
    kept.push_back(letterOf(name));
  for (char name : equation.lhs)
    if (equation.result.find(name) == std::string::npos) {
      if (name == 'b')
        samples = letterOf(name);
      else
        summed.push_back(letterOf(name));
    }

  const Offsets rows = combine(kept), terms = combine(summed);
  Doubles term(rows.lhs.size(), 0.0);
  for (std::size_t b = 0; b < samples.size; ++b) {
    for (std::size_t i = 0; i < term.size(); ++i) {
      const double *x = &call.in[0][rows.lhs[i] + b * samples.lhsStride];
      const double *y = &call.in[1][rows.rhs[i] + b * samples.rhsStride];
      for (std::size_t t = 0; t < terms.lhs.size(); ++t)
        term[i] += x[terms.lhs[t]] * y[terms.rhs[t]];
    }
    if (samples.size == 1)
      call.out[0] = term;
    else
      call.addSample(0, term);
  }
  if (call.in.size() == 3)
    for (std::size_t i = 0; i < call.out[0].size(); ++i)
      call.out[0][i] += call.in[2][i % call.in[2].size()];
}

void sum(Call &call) {
  const bool samples = call.inShape(0).size() > call.outShape(0).size();
  const std::size_t each =
      call.in[0].size() /
      static_cast<std::size_t>(samples ? call.inShape(0)[0] : 1);
  Doubles term(call.out[0].size(), 0.0);
  for (std::size_t first = 0; first < call.in[0].size(); first += each) {
    for (std::size_t i = 0; i < each; ++i)
      term[i % term.size()] += call.in[0][first + i];
    call.addSample(0, term);
  }
}

} // namespace

void addLinear(KernelTable &table) {
  table["einsum"] = einsum;
  table["sum"] = sum;
}

} // namespace mtplan::runtime::reference
