//===- expert_kernels.cpp - Mixtures of experts ---------------------------===//

#include "codegen/source/kernel_writer.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

void writeGate(const KernelWriter &to) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < to.instruction.inputs.size(); ++i)
    arguments.push_back(to.in(i));
  for (const std::string &one :
       {to.out(0), to.rows(to.input(0)), to.width(to.input(0)),
        to.count(to.spec.integer("top_k", 1)),
        std::string(to.spec.integer("normalise", 0) != 0 ? "true" : "false")})
    arguments.push_back(one);
  to.needs("gate.cuh");
  to.call(to.spec.kernel == "moe_gate" ? "moeGate" : "moeGateGrad", arguments);
}

void writeSlots(const KernelWriter &to) {
  const Tensor &gates = to.input(0);
  to.needs("gate.cuh");
  to.call("moeSlots",
          {to.in(0), to.names.integers(to.output(0)), to.extent(gates, 0),
           to.extent(gates, 1), to.extent(gates, 2),
           to.count(to.spec.integer("top_k", 1)),
           to.scratch("moeSlotsScratch(" + to.rows(gates) + ", " +
                      to.extent(gates, 2) + ")")});
}

void writeBalance(const KernelWriter &to) {
  const Tensor &gates = to.input(0);
  to.needs("balance.cuh");
  to.call(
      to.spec.kernel == "balance_loss" ? "balanceLoss" : "balanceLossGrad",
      {to.in(0), to.in(1), to.out(0), to.extent(gates, 0),
       to.of("Balance") + listText(std::vector<std::string>{
                              to.extent(gates, 1), to.extent(gates, 2),
                              to.count(to.spec.integer("top_k", 1)),
                              numberText(to.spec.number("coefficient", 0.0))}),
       to.scratch(to.of("balanceScratch") + "(" + to.extent(gates, 0) + ", " +
                  to.extent(gates, 2) + ")")});
}

std::string placesText(const KernelWriter &to, const Tensor &slots,
                       const Tensor &places) {
  return "Places" +
         listText(std::vector<std::string>{
             to.extent(slots, 0), to.extent(slots, 1), to.extent(slots, 2),
             to.extent(places, 2), to.extent(places, 3)});
}

void writeDispatch(const KernelWriter &to) {
  const std::string places =
      placesText(to, to.instruction.inputs[1], to.instruction.outputs[0]);
  to.needs("experts.cuh");
  to.call("moeDispatch", {to.in(0), to.integers(1), to.out(0), places,
                          to.scratch("placesScratch(" + places + ")")});
}

void writeDispatchGrad(const KernelWriter &to) {
  to.needs("experts.cuh");
  to.call("moeDispatchGrad",
          {to.integers(0), to.in(1), to.out(0),
           placesText(to, to.instruction.inputs[0], to.instruction.inputs[1])});
}

void writeCombine(const KernelWriter &to) {
  to.needs("experts.cuh");
  to.call("moeCombine",
          {to.in(0), to.in(1), to.integers(2), to.out(0),
           placesText(to, to.instruction.inputs[2], to.instruction.inputs[0])});
}

void writeCombineGrad(const KernelWriter &to) {
  const std::string places =
      placesText(to, to.instruction.inputs[2], to.instruction.inputs[0]);
  to.needs("experts.cuh");
  to.call("moeCombineGrad",
          {to.in(0), to.in(1), to.integers(2), to.in(3), to.out(0), to.out(1),
           places, to.scratch("placesScratch(" + places + ")")});
}

} // namespace

void addExpertKernels(KernelTable &table) {
  table["balance_loss"] = table["balance_loss_grad"] = writeBalance;
  table["moe_gate"] = table["moe_gate_grad"] = writeGate;
  table["moe_slots"] = writeSlots;
  table["moe_dispatch"] = writeDispatch;
  table["moe_dispatch_grad"] = writeDispatchGrad;
  table["moe_combine"] = writeCombine;
  table["moe_combine_grad"] = writeCombineGrad;
}

} // namespace mtplan::codegen
