//===- pointwise.cpp - Element by element, plainly ------------------------===//

#include <cmath>
#include <numbers>

#include "runtime/backend/activation.h"
#include "runtime/reference/reference.h"

namespace mtplan::runtime::reference {
namespace {

/// A function and its derivative at one point.
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

/// With the constants of Hendrycks and Gimpel 2016.
Jet geluTanh(double x) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const double bent = std::tanh(scale * (x + 0.044715 * x * x * x));
  const double inner = scale * (1.0 + 3.0 * 0.044715 * x * x);
  return {0.5 * x * (1.0 + bent),
          0.5 * (1.0 + bent) + 0.5 * x * (1.0 - bent * bent) * inner};
}

Jet activate(Activation kind, double x) {
  switch (kind) {
  case Activation::gelu:
    return gelu(x);
  case Activation::geluTanh:
    return geluTanh(x);
  case Activation::silu:
    return silu(x);
  case Activation::relu:
    // Not a comparison with the negative: a NaN must stay one.
    return x <= 0 ? Jet{0.0, 0.0} : Jet{x, 1.0};
  case Activation::tanh:
    return {std::tanh(x), 1.0 - std::tanh(x) * std::tanh(x)};
  case Activation::sigmoid:
    return sigmoid(x);
  }
  return {x, 1.0};
}

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
  const double factor = call.spec.number("factor", 1.0);
  for (std::size_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = call.in[0][i] * factor;
}

void dropout(Call &call) {
  const double rate = rateAt(call.moment, call.spec.number("rate", 0.0));
  const Stream stream = Stream::ofMask(call.moment, call.spec.text("mask", ""));
  const std::vector<std::int64_t> &shape = call.outShape(0);
  std::int64_t whole = 1; // elements of all ranks
  for (std::size_t d = 0; d < shape.size(); ++d)
    whole *= call.outPiece(0, d).global;
  forEachIndex(shape, [&](std::size_t i, const auto &index) {
    std::int64_t element = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Span piece = call.outPiece(0, d);
      element = element * piece.global + piece.offset + index[d];
    }
    call.out[0][i] =
        call.in[0][i] *
        maskValue(stream, rate, maskIndex(call.moment, whole, element));
  });
}

void activation(Call &call) {
  const Activation kind = activationOf(call.spec);
  for (std::size_t i = 0; i < call.out[0].size(); ++i)
    call.out[0][i] = activate(kind, call.in[0][i]).value;
}

void activationGrad(Call &call) {
  const Activation kind = activationOf(call.spec);
  zip(call, [kind](double x, double gradient) {
    return gradient * activate(kind, x).slope;
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

} // namespace

void addPointwise(Table &table) {
  table.functions["add"] = add;
  table.functions["mul"] = mul;
  table.functions["scale"] = scale;
  table.functions["dropout"] = dropout;
  table.functions["activation"] = activation;
  table.functions["activation_grad"] = activationGrad;
  table.functions["swiglu"] = swiglu;
  table.functions["swiglu_grad"] = swigluGrad;
}

} // namespace mtplan::runtime::reference
