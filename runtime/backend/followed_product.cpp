//===- followed_product.cpp - A product with an epilogue ------------------===//

#include "runtime/backend/followed_product.h"

#include "runtime/backend/activation.h"
#include "runtime/backend/followed.h"

namespace mtplan::runtime {

namespace {

// cuBLASLt's epilogues know no other, and take rows of whole 16 bytes.
bool hasEpilogue(const KernelSpec &second, const MatrixShape &shape) {
  constexpr std::int64_t kUnit = 8;
  return activationOf(second) == Activation::geluTanh && shape.batches == 1 &&
         shape.c.row % kUnit == 0 && shape.inputs != ElementType::f64;
}

} // namespace

std::optional<FollowedProduct> FollowedProduct::of(const KernelSpec &spec) {
  auto [first, second] = halvesOf(spec);
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
  for (const TensorView &one : {first.inputs[0], first.inputs[1]})
    if (one.type != calls.in)
      return std::nullopt;
  if (!calls.outer.empty() || !calls.summed.empty() ||
      calls.made != first.outputs[0].type ||
      (calls.biased && first.inputs[2].type != calls.made))
    return std::nullopt;
  FollowedProduct all;
  all.shape = calls.first;
  all.lhs = calls.lhs;
  all.rhs = calls.rhs;
  all.operands = first.inputs.size();
  all.flops = calls.flops();
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

} // namespace mtplan::runtime
