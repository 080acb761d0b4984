//===- attention_kernels.cpp - Attention, and positions of rows -----------===//

#include "codegen/source/kernel_writer.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

constexpr std::int64_t kMostWidth = 256; // of device/attention_tiles.cuh

/// Function for how many times 32 features its accumulators hold: as many as a
/// head has, and 2, 4 or 8.
std::string ofWidths(const KernelWriter &to, const char *function) {
  const std::int64_t width = to.spec.integer("head_dim", 1);
  return std::string(function) + "<" + to.real + ", " +
         (width <= 64    ? "2"
          : width <= 128 ? "4"
                         : "8") +
         ">";
}

std::string boolText(bool value) { return value ? "true" : "false"; }

/// The row of the biases' table for every distance: looked up, so made once.
std::string bucketsText(const KernelWriter &to, std::size_t table) {
  const std::vector<std::string> given = {
      to.count(to.shapeIn(0)[1]),
      to.count(to.shapeIn(1)[1]),
      to.names.offset(to.instruction.inputs[0], 1),
      to.count(to.shapeIn(table)[0]),
      to.count(to.spec.integer("max_distance", 0)),
      boolText(to.spec.integer("causal", 0) == 0)};
  std::string arguments;
  for (const std::string &one : given)
    arguments += (arguments.empty() ? "" : ", ") + one;
  return "table<std::int32_t>(now, " + quoted("biases " + arguments) +
         ", [&] { return biasRows(" + arguments + "); })";
}

/// Declares `all`, the heads of an attention.
/// \param table  place of the biases among the operands
void writeHeads(const KernelWriter &to, std::size_t table) {
  const std::vector<std::int64_t> &q = to.shapeIn(0), &k = to.shapeIn(1);
  const std::int64_t width = to.spec.integer("head_dim", 1);
  if (width > kMostWidth)
    to.refuse("has head_dim " + to.count(width) +
              ", of which GPUs take at most " + to.count(kMostWidth));
  Tensor byHead = to.instruction.inputs[0];
  byHead.shape[2] /= width;
  const std::int64_t heads = byHead.shape[2];
  std::vector<std::string> members = {
      ".width = " + to.count(width),
      ".batch = " + to.count(q[0]),
      ".queries = " + to.count(q[1]),
      ".heads = " + to.count(heads),
      ".keys = " + to.count(k[1]),
      ".keyHeads = " + to.count(k[2] / width),
      ".causal = " + boolText(to.spec.integer("causal", 0) != 0),
      ".scale = " + numberText(to.spec.number("scale", 1.0)),
      ".samples = " + to.names.span(byHead, 0),
      ".positions = " + to.names.span(byHead, 1),
      ".firstHead = " + to.names.offset(byHead, 2),
      ".allHeads = " + to.count(heads * to.names.ranksAlong(byHead, 2)),
      ".microBatch = now.microBatch"};
  if (to.instruction.inputs.size() > table) {
    members.push_back(".table = " + to.in(table));
    members.push_back(".buckets = " + bucketsText(to, table));
  }
  to.text.call("const Heads all{", members, "};");
}

void writeAttention(const KernelWriter &to) {
  to.needs("attention.cuh");
  to.text.open("{");
  writeHeads(to, 3);
  to.callAs(
      ofWidths(to, "attentionOf"),
      {to.in(0), to.in(1), to.in(2), to.out(0), to.out(1), "all", to.masks()});
  to.text.close();
}

void writeAttentionGrad(const KernelWriter &to) {
  const bool biased = to.instruction.outputs.size() > 3;
  to.needs("attention_grad.cuh");
  to.text.open("{");
  writeHeads(to, 6);
  to.callAs(ofWidths(to, "attentionGradOf"),
            {"{" + to.in(0), to.in(1), to.in(2), to.in(5) + "}", to.in(3),
             to.in(4), to.out(0), to.out(1), to.out(2), to.out(3),
             to.count(biased ? elementsOf(to.instruction.outputs[3]) : 0),
             "all", to.masks(),
             to.scratch(to.of("attentionGradScratch") + "(all, " +
                        boolText(biased) + ")")});
  to.text.close();
}

void writeRope(const KernelWriter &to) {
  const std::vector<std::int64_t> &shape = to.shapeIn(0);
  const std::int64_t pairs = to.spec.integer("rotary_dim", 0) / 2;
  const std::string powers =
      numberText(to.spec.number("theta", 1e4)) + ", " + to.count(pairs);
  to.needs("rope.cuh");
  to.call(
      "rope",
      {to.in(0), to.out(0),
       "table<double>(now, " + quoted("rope " + powers) +
           ", [] { return ropeFrequencies(" + powers + "); })",
       to.count(shape[0]),
       "Rotation" +
           listText(std::vector<std::string>{
               to.count(shape[1]), to.names.offset(to.instruction.inputs[0], 1),
               to.count(shape[2]), to.count(to.spec.integer("head_dim", 1)),
               to.count(pairs),
               boolText(to.spec.integer("interleaved", 0) != 0),
               to.spec.integer("inverse", 0) != 0 ? "-1.0" : "1.0"})});
}

/// Whether this rank has a sequence's first position: 0, or -1.
std::string sequenceText(const KernelWriter &to, const Tensor &tensor) {
  const std::string offset = to.names.offset(tensor, 1);
  return "Sequence{" + to.count(tensor.shape[1]) + ", " +
         (offset == "0" ? "0" : offset + " == 0 ? 0 : -1") + "}";
}

std::string tableText(const KernelWriter &to, const Tensor &tensor,
                      const Tensor &table) {
  const std::string own = to.names.offset(tensor, 1),
                    held = to.names.offset(table, 0);
  return "PositionTable{" + (own == held ? "0" : own + " - " + held) + ", " +
         to.count(table.shape[0]) + "}";
}

void writeFirst(const KernelWriter &to, const char *function,
                const Tensor &whole) {
  const Tensor &result = to.instruction.outputs[0];
  const std::int64_t width = result.shape.back();
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < to.instruction.inputs.size(); ++i)
    arguments.push_back(to.in(i));
  for (const std::string &one :
       {to.out(0), to.count(elementsOf(result) / width), to.count(width),
        sequenceText(to, whole)})
    arguments.push_back(one);
  to.needs("position.cuh");
  to.call(function, arguments);
}

void writePutFirstGrad(const KernelWriter &to) {
  const std::string sizes =
      "ColumnSizes" + listText(std::vector<std::int64_t>{to.shapeIn(0)[0], 1,
                                                         to.shapeIn(0)[2]});
  to.needs("position.cuh");
  to.call("putFirstGrad",
          {to.in(0), to.out(0), to.out(1), sizes,
           sequenceText(to, to.instruction.outputs[0]),
           to.scratch(to.of("columnScratch") + "(" + sizes + ", 1)")});
}

void writePosition(const KernelWriter &to) {
  const Tensor &from = to.instruction.inputs[0];
  const std::int64_t width = from.shape[2];
  to.needs("position.cuh");
  to.call("positionEmbedding",
          {to.in(0), to.in(1), to.out(0), to.count(elementsOf(from) / width),
           to.count(width), tableText(to, from, to.instruction.inputs[1]),
           to.count(from.shape[1])});
}

void writePositionGrad(const KernelWriter &to) {
  const Tensor &from = to.instruction.inputs[0];
  to.needs("position.cuh");
  to.call("positionEmbeddingGrad",
          {to.in(0), to.out(0), tableText(to, from, to.instruction.outputs[0]),
           to.count(from.shape[0]), to.count(from.shape[1]),
           to.count(from.shape[2])});
}

} // namespace

void addAttentionKernels(KernelTable &table) {
  table["attention"] = writeAttention;
  table["attention_grad"] = writeAttentionGrad;
  table["rope"] = writeRope;
  table["position_embedding"] = writePosition;
  table["position_embedding_grad"] = writePositionGrad;
  table["put_first_grad"] = writePutFirstGrad;
  table["put_first"] = [](const KernelWriter &to) {
    writeFirst(to, "putFirst", to.instruction.outputs[0]);
  };
  table["take_first"] = [](const KernelWriter &to) {
    writeFirst(to, "takeFirst", to.instruction.inputs[0]);
  };
  table["take_first_grad"] = [](const KernelWriter &to) {
    writeFirst(to, "takeFirstGrad", to.instruction.outputs[0]);
  };
}

} // namespace mtplan::codegen
