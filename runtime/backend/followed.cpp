//===- followed.cpp - A kernel that another one follows -------------------===//

#include "runtime/backend/followed.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/nearest_word.h"
#include "runtime/backend/signature.h"

namespace mtplan::runtime {

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
  bool isInTurn() const override { return true; }

private:
  const Pairing pairing;
  const MadeKernel first, second;
};

/// A kernel that may be followed.
struct Followable {
  std::string_view kernel;
  std::size_t leastInputs, mostInputs, outputs; ///< of its own
  std::vector<std::string_view> then;           ///< what may follow it
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

/// How many operands `then` has before the first's result.
std::size_t operandsBefore(std::string_view then) {
  return then == "activation" || then == "accumulate" ? 0 : 1;
}

/// Of an einsum and the sum beside it.
Pairing besides(const KernelSpec &spec) {
  const std::size_t results = spec.find(kThen) ? 4 : 2;
  if (spec.kernel != "einsum")
    refuse(spec, std::string("has ") + kBiasGradient +
                     ", which only an einsum may have");
  if (spec.integer(kBiasGradient, 0) != 1)
    refuse(spec, std::string(kBiasGradient) + " must be 1, or not be there");
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
    refuse(spec, "has " + then + " after it, which only " +
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

MadeKernel inTurn(Backend &backend, const KernelSpec &spec) {
  const auto [first, second] = halvesOf(spec);
  return std::make_unique<InTurn>(pairingOf(spec), backend.prepare(first),
                                  backend.prepare(second));
}

} // namespace mtplan::runtime
