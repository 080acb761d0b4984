//===- vocabulary_kernels.cpp - Lookups and losses, in pieces -------------===//

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

/// Where the piece of the logits begins, how long a row is, and how much of
/// that is not padding.
std::string classesText(const KernelWriter &to) {
  const Tensor &logits = to.instruction.inputs[0];
  const std::size_t last = logits.shape.size() - 1;
  const std::int64_t width = logits.shape[last];
  const std::int64_t all =
      to.spec.integer("classes", std::numeric_limits<std::int64_t>::max());
  const std::string offset = to.names.offset(logits, last);
  const bool isPadded = all < width * to.names.ranksAlong(logits, last);
  const std::string real =
      isPadded ? "std::clamp<std::int64_t>(" + to.names.known("V", all) +
                     (offset == "0" ? "" : " - " + offset) + ", 0, " +
                     to.width(logits) + ")"
               : to.width(logits);
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

} // namespace mtplan::codegen
