//===- followed.cpp - A kernel that another one follows -------------------===//

#include "runtime/backend/followed.h"

#include <array>

#include "runtime/backend/signature.h"

namespace mtplan::runtime {

namespace {

class InTurn final : public Kernel {
public:
  /// \param ownOperands  of the first
  /// \param operandsBefore  of the second, before the first's result
  InTurn(std::size_t ownOperands, std::size_t operandsBefore,
         MadeKernel theFirst, MadeKernel theSecond)
      : own(ownOperands), before(operandsBefore), first(std::move(theFirst)),
        second(std::move(theSecond)) {}

  void run(const Invocation &call) override {
    Invocation half = call;
    first->run(half);
    std::array<const void *, 2> operands{};
    for (std::size_t i = 0; i < before; ++i)
      operands[i] = call.inputs[own + i];
    operands[before] = call.outputs[0];
    half.inputs = operands.data();
    half.outputs = call.outputs + 1;
    second->run(half);
  }

  double flops() const override { return first->flops() + second->flops(); }
  bool isInTurn() const override { return true; }

private:
  const std::size_t own, before;
  const MadeKernel first, second;
};

} // namespace

int operandsBefore(const std::string &then) {
  if (then == "activation" || then == "accumulate")
    return 0;
  return then == "activation_grad" || then == "add" ? 1 : -1;
}

std::pair<KernelSpec, KernelSpec> halvesOf(const KernelSpec &spec) {
  const std::string then = spec.text(kThen, "");
  const bool drops = spec.kernel == "dropout";
  if (spec.kernel != "einsum" && !drops)
    refuse(spec, "has " + then +
                     " after it, which only an einsum or a dropout may have");
  const int before = operandsBefore(then);
  if (before < 0 || (drops && then != "add"))
    refuse(spec, "then '" + then + "' is " +
                     (drops ? "not add"
                            : "none of activation, activation_grad, add, "
                              "accumulate"));
  const std::size_t operands = spec.inputs.size(),
                    least = (drops ? 1 : 2) + static_cast<std::size_t>(before);
  if (operands < least || spec.outputs.size() != 2)
    refuse(spec, "has " + std::to_string(operands) + " operands and " +
                     std::to_string(spec.outputs.size()) + " results; with " +
                     then + " there are " + std::to_string(least) +
                     (drops ? "" : " or " + std::to_string(least + 1)) +
                     ", and 2");
  Halves<TensorView> halves = halvesOf(then, spec.inputs, spec.outputs);
  KernelSpec first{
      spec.kernel, spec.label, {}, halves.firstInputs, halves.firstOutputs};
  for (const Setting &setting : spec.settings)
    if (setting.name != kThen)
      first.settings.push_back(setting);
  KernelSpec second{then, spec.label, first.settings, halves.secondInputs,
                    halves.secondOutputs};
  return {std::move(first), std::move(second)};
}

bool isOfOnePrecision(const KernelSpec &spec) {
  const auto [first, second] = halvesOf(spec);
  return usesDouble(first) == usesDouble(second);
}

MadeKernel inTurn(Backend &backend, const KernelSpec &spec) {
  const auto [first, second] = halvesOf(spec);
  return std::make_unique<InTurn>(first.inputs.size(), second.inputs.size() - 1,
                                  backend.prepare(first),
                                  backend.prepare(second));
}

} // namespace mtplan::runtime
