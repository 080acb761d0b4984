//===- followed_product.cpp - A product with an epilogue ------------------===//

#include "runtime/backend/followed_product.h"

#include "runtime/backend/activation.h"
#include "runtime/backend/followed.h"
#include "runtime/backend/signature.h"

namespace mtplan::runtime {

namespace {

// cuBLASLt's epilogues know no other, and take rows of whole 16 bytes. Their
// tanh is the device's approximate one, right to about 2^-11 (PTX ISA,
// tanh.approx.f32): enough for results of 16 bits alone.
bool hasEpilogue(const KernelSpec &second, const MatrixShape &shape) {
  constexpr std::int64_t kUnit = 8;
  return activationOf(second) == Activation::geluTanh && shape.batches == 1 &&
         shape.c.row % kUnit == 0 && bytesOf(shape.result) == 2;
}

FollowedProduct productOf(const MatrixCalls &calls) {
  FollowedProduct all;
  all.shape = calls.first;
  all.lhs = calls.lhs;
  all.rhs = calls.rhs;
  all.flops = calls.flops();
  return all;
}

/// Whether a library has a product as one call, and rounds nothing.
bool isOneCall(const MatrixCalls &calls, const KernelSpec &product) {
  return product.inputs[0].type == calls.in &&
         product.inputs[1].type == calls.in && calls.outer.empty() &&
         calls.summed.empty() && calls.made == product.outputs[0].type &&
         (!calls.biased || product.inputs[2].type == calls.made);
}

/// The sum beside a product goes over the same as the product does, if what it
/// leaves is what the result has of that operand.
std::optional<FollowedProduct> withBiasGradient(const KernelSpec &spec) {
  auto [product, sum] = halvesOf(spec);
  FollowedProduct all;
  if (product.find(kThen)) {
    const auto accumulated = FollowedProduct::of(product);
    if (!accumulated || product.text(kThen, "") != "accumulate")
      return std::nullopt;
    all = *accumulated;
    all.biasGradient = 3;
  } else {
    if (!ProductShape::of(product))
      return std::nullopt;
    const MatrixCalls calls = MatrixCalls::of(product);
    if (!isOneCall(calls, product))
      return std::nullopt;
    all = productOf(calls);
    all.result = 0;
    all.biasGradient = 1;
  }
  const Equation letters(product);
  const std::size_t kept = sum.outputs[0].shape.size();
  for (std::size_t d = 0; d < letters.rhs.size(); ++d)
    if ((letters.result.find(letters.rhs[d]) != std::string::npos) !=
        (d + kept >= letters.rhs.size()))
      return std::nullopt;
  if (all.shape.batches > 1 ||
      spec.outputs[all.biasGradient].type != all.shape.result)
    return std::nullopt;
  all.shape.sums = all.lhs == 1 ? OperandSum::a : OperandSum::b;
  return all;
}

/// An einsum that nothing follows.
std::optional<FollowedProduct> alone(const KernelSpec &spec) {
  if (spec.kernel != "einsum" || !ProductShape::of(spec))
    return std::nullopt;
  const MatrixCalls calls = MatrixCalls::of(spec);
  if (!isOneCall(calls, spec))
    return std::nullopt;
  FollowedProduct all = productOf(calls);
  all.operands = spec.inputs.size();
  all.result = 0;
  return all;
}

} // namespace

std::optional<FollowedProduct> FollowedProduct::of(const KernelSpec &spec) {
  if (!isOfTwo(spec))
    return alone(spec);
  if (spec.find(kBiasGradient))
    return withBiasGradient(spec);
  auto [first, second] = halvesOf(spec);
  if (first.kernel != "einsum")
    return std::nullopt;
  // Between them nothing is rounded: all are of one type, but for the sums of
  // an accumulator.
  const TensorView between = first.outputs[0];
  const bool accumulates = second.kernel == "accumulate";
  if (!accumulates)
    for (const auto *side : {&second.inputs, &second.outputs})
      for (const TensorView &one : *side)
        if (one.type != between.type)
          return std::nullopt;
  first.outputs[0].type = second.outputs[0].type;
  if (!ProductShape::of(first))
    return std::nullopt;
  const MatrixCalls calls = MatrixCalls::of(first);
  if (!isOneCall(calls, first))
    return std::nullopt;
  FollowedProduct all = productOf(calls);
  all.operands = first.inputs.size();
  if (accumulates || second.kernel == "add") {
    all.shape.adds = true;
    all.takesAddend = !accumulates;
    return all;
  }
  if (!hasEpilogue(second, all.shape))
    return std::nullopt;
  all.takesKept = second.kernel == "activation_grad";
  all.shape.epilogue = all.takesKept ? Epilogue::geluGrad : Epilogue::gelu;
  // The derivative's epilogue has none.
  return all.takesKept && calls.biased ? std::nullopt : std::optional(all);
}

// What a gelu keeps might be spread likewise; nobody has such products yet.
std::optional<FollowedProduct> FollowedProduct::of(const KernelSpec &spec,
                                                   const EvenRuns &runs) {
  std::optional<FollowedProduct> all = of(spec);
  if (!all || all->shape.batches > 1 || all->shape.epilogue != Epilogue::none)
    return std::nullopt;
  for (const auto *steps : {&runs.inputs, &runs.outputs})
    for (const std::int64_t step : *steps)
      if (step < 0 || step % kAlignment != 0)
        return std::nullopt;
  MatrixShape &shape = all->shape;
  const std::int64_t toResult = runs.outputs[all->result];
  // Both are laid out as one.
  if (all->takesAddend && runs.inputs[all->operands] != toResult)
    return std::nullopt;
  shape.batches = runs.count;
  shape.a.batch = runs.inputs[all->lhs] / bytesOf(shape.inputs);
  shape.b.batch = runs.inputs[all->rhs] / bytesOf(shape.inputs);
  shape.c.batch = toResult / bytesOf(shape.result);
  const std::int64_t toVector = shape.biased ? runs.inputs[2]
                                : shape.sums != OperandSum::none
                                    ? runs.outputs[all->biasGradient]
                                    : 0;
  shape.vectorStep = toVector / bytesOf(shape.result);
  all->flops *= static_cast<double>(runs.count);
  return all;
}

} // namespace mtplan::runtime
