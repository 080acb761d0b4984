//===- pointwise.cpp - Pointwise reference kernels ------------------------===//

#include <cmath>
#include <numbers>

#include "runtime/reference/kernels.h"

namespace mtplan::runtime::reference {

namespace {

/// Holds the value and the derivative of a function at one point.
struct Jet {
  double value, slope;
};

Jet sigmoid(double x) {
  const double share = 1.0 / (1.0 + std::exp(-x));
  return {share, share * (1.0 - share)};
}

Jet silu(double x) {
  const double share = sigmoid(x).value;
  return {x * share, share * (1.0 + x * (1.0 - share))};
}

Jet gelu(double x) {
  const double below = 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2));
  const double density =
      std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {x * below, below + x * density};
}

/// Approximates GELU by tanh (Hendrycks and Gimpel 2016).
Jet geluTanh(double x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double bent = std::tanh(scale * (x + 0.044715 * x * x * x));
  const double inner = scale * (1.0 + 3.0 * 0.044715 * x * x);
  return {0.5 * x * (1.0 + bent),
          0.5 * (1.0 + bent) + 0.5 * x * (1.0 - bent * bent) * inner};
}

Jet relu(double x) {
  // The comparison is false for NaN, which therefore stays NaN.
  return x <= 0 ? Jet{0.0, 0.0} : Jet{x, 1.0};
}

Jet tanh(double x) { return {std::tanh(x), 1.0 - std::tanh(x) * std::tanh(x)}; }

using Function = Jet (*)(double);

/// Selects the function by the attribute `kind`.
Function activationOf(const Call &call) {
  static const std::map<std::string, Function> kFunctions = {
      {"gelu", gelu}, {"gelu_tanh", geluTanh}, {"silu", silu},
      {"relu", relu}, {"tanh", tanh},          {"sigmoid", sigmoid}};
  return kFunctions.at(call.attributes.text("kind"));
}

/// Computes result[i] = combine(a[i], b[i]) for the operands a and b.
template <typename Combine> void zip(Call &call, Combine &&combine) {
  for (std::size_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = combine(call.in[0][i], call.in[1][i]);
}

void add(Call &call) {
  zip(call, [](double a, double b) { return a + b; });
}

void mul(Call &call) {
  zip(call, [](double a, double b) { return a * b; });
}

void scale(Call &call) {
  const double factor = call.attributes.number("factor", 1.0);
  for (std::size_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = call.in[0][i] * factor;
}

void dropout(Call &call) {
  const double rate = rateAt(call.moment, call.attributes.number("rate", 0.0));
  const Stream stream =
      Stream::ofMask(call.moment, call.attributes.text("mask"));
  const std::vector<std::int64_t> &shape = call.outShape(0);
  std::vector<Span> pieces;
  std::int64_t elements = 1; // elements of the global tensor
  for (std::size_t d = 0; d < shape.size(); ++d) {
    pieces.push_back(call.outPiece(0, d));
    elements *= pieces[d].global;
  }
  forEachIndex(shape, [&](std::size_t i, const auto &index) {
    call.out[0][i] =
        call.in[0][i] *
        maskValue(stream, rate,
                  maskIndex(call.moment, elements, globalIndex(pieces, index)));
  });
}

void activation(Call &call) {
  const Function function = activationOf(call);
  for (std::size_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = function(call.in[0][i]).value;
}

void activationGrad(Call &call) {
  zip(call, [function = activationOf(call)](double x, double gradient) {
    return gradient * function(x).slope;
  });
}

void swiglu(Call &call) {
  zip(call, [](double gate, double up) { return silu(gate).value * up; });
}

void swigluGrad(Call &call) {
  for (std::size_t i = 0; i < call.out[0].size(); ++i) {
    const Jet gate = silu(call.in[0][i]);
    const double gradient = call.in[2][i];
    call.out[0][i] = gradient * gate.slope * call.in[1][i];
    call.out[1][i] = gradient * gate.value;
  }
}

void logitSoftcap(Call &call) {
  const double cap = call.attributes.number("cap", 0.0);
  for (std::size_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = cap * std::tanh(call.in[0][i] / cap);
}

void logitSoftcapGrad(Call &call) {
  const double cap = call.attributes.number("cap", 0.0);
  zip(call, [cap](double output, double gradient) {
    const double share = output / cap;
    return gradient * (1.0 - share * share);
  });
}

/// Copies a shard of the result from the operand's larger shard.
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

/// Copies the operand's shard number `place` along dimension `dim`. All shards
/// have equal size.
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

/// Copies the tensor on the first rank of an axis (`place` 0). On other ranks
/// the result is zero.
void mask(Call &call) {
  if (call.attributes.integer("place", 0) == 0)
    call.copy(0, 0);
}

void copy(Call &call) { call.copy(0, 0); }

void zeros(Call &) {}

} // namespace

void addPointwise(KernelTable &table) {
  table["add"] = add;
  table["mul"] = mul;
  table["scale"] = scale;
  table["dropout"] = dropout;
  table["activation"] = activation;
  table["activation_grad"] = activationGrad;
  table["swiglu"] = swiglu;
  table["swiglu_grad"] = swigluGrad;
  table["logit_softcap"] = logitSoftcap;
  table["logit_softcap_grad"] = logitSoftcapGrad;
  table["piece"] = piece;
  table["transpose"] = transpose;
  table["slice"] = slice;
  table["mask"] = mask;
  table["copy"] = copy;
  table["cast"] = copy;
  table["zeros"] = zeros;
}

} // namespace mtplan::runtime::reference
