//===- pointwise.cpp - Kernels that go element by element -----------------===//

#include <cmath>
#include <numbers>

#include "ir/interpret/kernel.h"

namespace mtplan::ir {

using runtime::maskIndex, runtime::maskValue;

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
  case Activation::Gelu:
    return gelu(x);
  case Activation::GeluTanh:
    return geluTanh(x);
  case Activation::Silu:
    return silu(x);
  case Activation::Relu:
    // Not a comparison with the negative: a NaN must stay one.
    return x <= 0 ? Jet{0.0, 0.0} : Jet{x, 1.0};
  case Activation::Tanh:
    return {std::tanh(x), 1.0 - std::tanh(x) * std::tanh(x)};
  case Activation::Sigmoid:
    return sigmoid(x);
  }
  llvm_unreachable("unknown activation");
}

/// result[i] = combine(operand 0 [i], operand 1 [i])
template <typename Combine> void zip(KernelCall &call, Combine &&combine) {
  const std::vector<double> &lhs = call.operands[0]->data;
  const std::vector<double> &rhs = call.operands[1]->data;
  for (std::size_t i = 0; i < lhs.size(); ++i)
    call.results[0].data[i] = combine(lhs[i], rhs[i]);
}

void add(AddOp, KernelCall &call) {
  zip(call, [](double a, double b) { return a + b; });
}

void mul(MulOp, KernelCall &call) {
  zip(call, [](double a, double b) { return a * b; });
}

void scale(ScaleOp op, KernelCall &call) {
  const double factor = op.getFactor().convertToDouble();
  const std::vector<double> &input = call.operands[0]->data;
  for (std::size_t i = 0; i < input.size(); ++i)
    call.results[0].data[i] = input[i] * factor;
}

void dropout(DropoutOp op, KernelCall &call) {
  const HostTensor &input = *call.operands[0];
  const double rate = op.getRate().convertToDouble();
  const Stream stream = Stream::ofMask(call.moment, op.getMask());
  std::int64_t whole = 1; // elements of all ranks
  for (const Span &span : call.resultSpans[0])
    whole *= span.global;
  forEachIndex(input.shape, [&](std::size_t i, const auto &index) {
    const std::int64_t element = globalIndex(call.resultSpans[0], index);
    call.results[0].data[i] =
        input.data[i] *
        maskValue(stream, rate, maskIndex(call.moment, whole, element));
  });
}

void activation(ActivationOp op, KernelCall &call) {
  const std::vector<double> &input = call.operands[0]->data;
  for (std::size_t i = 0; i < input.size(); ++i)
    call.results[0].data[i] = activate(op.getKind(), input[i]).value;
}

void activationGrad(ActivationGradOp op, KernelCall &call) {
  zip(call, [kind = op.getKind()](double x, double gradient) {
    return gradient * activate(kind, x).slope;
  });
}

void swiglu(SwigluOp, KernelCall &call) {
  zip(call, [](double gate, double up) { return silu(gate).value * up; });
}

void swigluGrad(SwigluGradOp, KernelCall &call) {
  const std::vector<double> &gradient = call.operands[2]->data;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const Jet gate = silu(call.operands[0]->data[i]);
    call.results[0].data[i] =
        gradient[i] * gate.slope * call.operands[1]->data[i];
    call.results[1].data[i] = gradient[i] * gate.value;
  }
}

} // namespace

void addPointwiseKernels(KernelTable &table) {
  table.add<AddOp>(add);
  table.add<MulOp>(mul);
  table.add<ScaleOp>(scale);
  table.add<DropoutOp>(dropout);
  table.add<ActivationOp>(activation);
  table.add<ActivationGradOp>(activationGrad);
  table.add<SwigluOp>(swiglu);
  table.add<SwigluGradOp>(swigluGrad);
}

} // namespace mtplan::ir
