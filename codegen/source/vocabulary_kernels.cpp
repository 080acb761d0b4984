//===- vocabulary_kernels.cpp - Lookups, losses and experts ---------------===//

#include <limits>

#include "codegen/source/kernel_writer.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

std::string heldText(const KernelWriter &to, const Tensor &table) {
  return "HeldRows{" + to.names.offset(table, 0) + ", " + to.extent(table, 0) +
         "}";
}

void writeEmbedding(const KernelWriter &to) {
  const Tensor &table = to.instruction.inputs[1];
  to.needs("embedding.cuh");
  to.call("embedding",
          {to.integers(0), to.in(1), to.out(0), to.elements(to.input(0)),
           to.extent(table, 1), heldText(to, table)});
}

void writeEmbeddingGrad(const KernelWriter &to) {
  const Tensor &ids = to.instruction.inputs[0],
               &table = to.instruction.outputs[0];
  const std::string sizes =
      "ColumnSizes" + listText(std::vector<std::string>{to.elements(ids, 0, 1),
                                                        to.elements(ids, 1),
                                                        to.extent(table, 1)});
  const std::string held = heldText(to, table);
  to.needs("embedding.cuh");
  to.call("embeddingGrad", {to.integers(0), to.in(1), to.out(0), sizes, held,
                            to.scratch(to.of("embeddingGradScratch") + "(" +
                                       sizes + ", " + held + ")")});
}

std::string classesText(const KernelWriter &to) {
  const Tensor &logits = to.instruction.inputs[0];
  const std::size_t last = logits.shape.size() - 1;
  const std::int64_t width = logits.shape[last];
  const std::int64_t all =
      to.spec.integer("classes", std::numeric_limits<std::int64_t>::max());
  const std::string offset = to.names.offset(logits, last);
  const bool isPadded = all < width * to.names.ranksAlong(logits, last);
  const std::string classes = to.names.known("V", all);
  const std::string real = !isPadded ? to.width(logits)
                           : offset == "0"
                               ? classes
                               : "std::clamp<std::int64_t>(" + classes + " - " +
                                     offset + ", 0, " + to.width(logits) + ")";
  return "Classes{" + offset + ", " + to.width(logits) + ", " + real + "}";
}

void writeVocab(const KernelWriter &to, const char *function,
                std::vector<std::string> arguments) {
  arguments.push_back(to.rows(to.input(0)));
  arguments.push_back(classesText(to));
  to.needs("loss.cuh");
  to.call(function, arguments);
}

void writeTokenLoss(const KernelWriter &to) {
  const Tensor &targets = to.instruction.inputs[3];
  to.needs("loss.cuh");
  to.callAs("tokenLoss",
            {to.in(0), to.in(1), to.in(2), to.integers(3), to.in(4), to.out(0),
             to.elements(targets, 0, 1), to.elements(targets, 1)});
}

} // namespace

void addVocabularyKernels(KernelTable &table) {
  table["embedding"] = writeEmbedding;
  table["embedding_grad"] = writeEmbeddingGrad;
  table["vocab_max"] = [](const KernelWriter &to) {
    writeVocab(to, "vocabMax", {to.in(0), to.out(0)});
  };
  table["vocab_sum_exp"] = [](const KernelWriter &to) {
    writeVocab(to, "vocabSumExp", {to.in(0), to.in(1), to.out(0)});
  };
  table["vocab_pick"] = [](const KernelWriter &to) {
    writeVocab(to, "vocabPick", {to.in(0), to.integers(1), to.out(0)});
  };
  table["cross_entropy_grad"] = [](const KernelWriter &to) {
    writeVocab(
        to, "crossEntropyGrad",
        {to.in(0), to.in(1), to.in(2), to.integers(3), to.in(4), to.out(0)});
  };
  table["token_loss"] = writeTokenLoss;
}

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
