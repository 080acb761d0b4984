//===- followed.cpp - A kernel that another one follows -------------------===//

#include "runtime/backend/followed.h"

#include <array>

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

/// How many operands `then` has before the first's result, or -1 if it is no
/// kernel that may follow another.
int operandsBefore(const std::string &then) {
  if (then == "activation" || then == "accumulate")
    return 0;
  return then == "activation_grad" || then == "add" ? 1 : -1;
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
  const bool isEinsum = spec.kernel == "einsum", isSum = spec.kernel == "sum",
             drops = spec.kernel == "dropout";
  if (!isEinsum && !isSum && !drops)
    refuse(spec, "has " + then +
                     " after it, which only an einsum, a sum or a dropout may "
                     "have");
  const int before = operandsBefore(then);
  if (before < 0 || (drops && then != "add") || (isSum && then != "accumulate"))
    refuse(spec, "then '" + then + "' is " +
                     (drops   ? "not add"
                      : isSum ? "not accumulate"
                              : "none of activation, activation_grad, add, "
                                "accumulate"));
  const std::size_t operands = spec.inputs.size(),
                    least =
                        (isEinsum ? 2 : 1) + static_cast<std::size_t>(before);
  if (operands < least || spec.outputs.size() != 2)
    refuse(spec, "has " + std::to_string(operands) + " operands and " +
                     std::to_string(spec.outputs.size()) + " results; with " +
                     then + " there are " + std::to_string(least) +
                     (isEinsum ? " or " + std::to_string(least + 1) : "") +
                     ", and 2");
  Pairing pairing;
  pairing.firstInputs = operands - static_cast<std::size_t>(before);
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
