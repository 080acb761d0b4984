//===- followed.cpp - Kernels with a fused consumer -----------------------===//

#include "runtime/backend/followed.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/nearest_word.h"
#include "runtime/backend/signature.h"

namespace mtplan::runtime {

//===----------------------------------------------------------------------===//
// Pairs of kernels
//===----------------------------------------------------------------------===//

namespace {

class InTurn final : public Kernel {
public:
  InTurn(Pairing thePairing, MadeKernel theFirst, MadeKernel theSecond)
      : pairing(std::move(thePairing)), first(std::move(theFirst)),
        second(std::move(theSecond)) {}

  void run(const Invocation &call) override {
    Invocation half = call;
    first->run(half);
    std::array<const void *, 2> operands{};
    std::size_t count = 0;
    for (const std::size_t i : pairing.secondInputs)
      operands[count++] = call.inputs[i];
    if (pairing.takesResult)
      operands[count] = call.outputs[0];
    half.inputs = operands.data();
    half.outputs = call.outputs + pairing.firstOutputs;
    second->run(half);
  }

  double flops() const override { return first->flops() + second->flops(); }
  bool isSequential() const override { return true; }

private:
  const Pairing pairing;
  const MadeKernel first, second;
};

struct Followable {
  std::string_view kernel;
  /// These numbers do not count the operands and results of the consumer.
  std::size_t leastInputs, mostInputs, outputs;
  std::vector<std::string_view> then; ///< kernels that can be fused
};

const std::vector<Followable> &followables() {
  static const std::vector<Followable> kAll = {
      {"einsum",
       2,
       3,
       1,
       {"activation", "activation_grad", "add", "accumulate"}},
      {"sum", 1, 1, 1, {"accumulate"}},
      {"dropout", 1, 1, 1, {"add"}},
      {"layer_norm_grad", 3, 3, 3, {"add"}},
      {"rms_norm_grad", 3, 3, 2, {"add"}},
  };
  return kAll;
}

/// Returns how many operands a consumer has before the producer's result.
std::size_t operandsBefore(std::string_view then) {
  return then == "activation" || then == "accumulate" ? 0 : 1;
}

/// Returns the pairing of an einsum and its bias gradient.
Pairing besides(const KernelSpec &spec) {
  const std::size_t results = spec.find(kThen) ? 4 : 2;
  if (spec.kernel != "einsum")
    refuse(spec, std::string("has ") + kBiasGradient +
                     ", which only an einsum may have");
  if (spec.integer(kBiasGradient, 0) != 1)
    refuse(spec, std::string(kBiasGradient) + " must be 1 or absent");
  if (spec.inputs.size() != 2 || spec.outputs.size() != results)
    refuse(spec, "has " + std::to_string(spec.inputs.size()) +
                     " operands and " + std::to_string(spec.outputs.size()) +
                     " results; with " + kBiasGradient + " there are 2, and " +
                     std::to_string(results));
  return {2, results / 2, {1}, false};
}

} // namespace

bool isOfTwo(const KernelSpec &spec) {
  return spec.find(kThen) || spec.find(kBiasGradient);
}

Pairing pairingOf(const KernelSpec &spec) {
  if (spec.find(kBiasGradient))
    return besides(spec);
  const std::string then = spec.text(kThen, "");
  const auto first =
      std::ranges::find(followables(), spec.kernel, &Followable::kernel);
  if (first == followables().end()) {
    std::vector<std::string_view> names;
    for (const Followable &one : followables())
      names.push_back(one.kernel);
    refuse(spec, "has the fused consumer " + then + ", which only " +
                     base::listed(names) + " may have");
  }
  if (std::ranges::find(first->then, then) == first->then.end())
    refuse(spec, "then '" + then + "' is not " + base::listed(first->then));
  const std::size_t before = operandsBefore(then),
                    operands = spec.inputs.size(),
                    least = first->leastInputs + before,
                    most = first->mostInputs + before,
                    results = first->outputs + 1;
  if (operands < least || operands > most || spec.outputs.size() != results)
    refuse(spec, "has " + std::to_string(operands) + " operands and " +
                     std::to_string(spec.outputs.size()) + " results; with " +
                     then + " there are " + std::to_string(least) +
                     (most > least ? " or " + std::to_string(most) : "") +
                     ", and " + std::to_string(results));
  Pairing pairing;
  pairing.firstInputs = operands - before;
  pairing.firstOutputs = first->outputs;
  if (before > 0)
    pairing.secondInputs = {operands - 1};
  return pairing;
}

std::pair<KernelSpec, KernelSpec> halvesOf(const KernelSpec &spec) {
  const bool isBeside = spec.find(kBiasGradient);
  Halves<TensorView> halves =
      halvesOf(pairingOf(spec), spec.inputs, spec.outputs);
  KernelSpec first{
      spec.kernel, spec.label, {}, halves.firstInputs, halves.firstOutputs};
  for (const Setting &setting : spec.settings)
    if (setting.name != (isBeside ? kBiasGradient : kThen))
      first.settings.push_back(setting);
  KernelSpec second{isBeside ? "sum" : spec.text(kThen, ""), spec.label,
                    first.settings, halves.secondInputs, halves.secondOutputs};
  return {std::move(first), std::move(second)};
}

bool isOfOnePrecision(const KernelSpec &spec) {
  const auto [first, second] = halvesOf(spec);
  return usesDouble(first) == usesDouble(second);
}

MadeKernel makeSequential(Backend &backend, const KernelSpec &spec) {
  const auto [first, second] = halvesOf(spec);
  return std::make_unique<InTurn>(pairingOf(spec), backend.prepare(first),
                                  backend.prepare(second));
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

namespace {

// Returns whether an epilogue of cuBLASLt may compute the activation. Only the
// tanh approximation of gelu qualifies, and only for a single product whose
// result has 16-bit elements in rows of a multiple of 16 bytes. cuBLASLt's tanh
// has an error of about 2^-11 (PTX ISA, tanh.approx.f32), which is too large
// for wider results.
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

/// Returns whether one library call computes the product without conversions.
bool isOneCall(const MatrixCalls &calls, const KernelSpec &product) {
  return product.inputs[0].type == calls.in &&
         product.inputs[1].type == calls.in && calls.outer.empty() &&
         calls.summed.empty() && calls.made == product.outputs[0].type &&
         (!calls.biased || product.inputs[2].type == calls.made);
}

/// Returns the product of an einsum with `bias_gradient`, or none if one
/// library call cannot compute both results. The bias gradient must have
/// exactly the letters that the second operand shares with the einsum's result,
/// so that both results are sums over the same letters.
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
  // Fusion does not round the value between the two kernels. Therefore the
  // consumer's tensors must have the type of this value; only an accumulator
  // may have another type.
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
  // cuBLASLt's epilogue for the derivative of gelu has no bias.
  return all.takesKept && calls.biased ? std::nullopt : std::optional(all);
}

// Rejects gelu epilogues, because no model has a batch of such products.
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
  // MatrixShape has one layout, c, for the addend and the result.
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
