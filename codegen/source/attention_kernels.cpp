//===- attention_kernels.cpp - Attention, and positions of rows -----------===//

#include "codegen/source/kernel_writer.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

constexpr std::int64_t kMostWidth = 256; // the same as in attention_tiles.cuh

std::string widthText(const KernelWriter &to, std::int64_t width) {
  return to.names.isConstant("D", width) ? "D" : to.count(width);
}

std::string ofWidths(const KernelWriter &to, const char *function) {
  return std::string(function) + "<" + to.real + ", headTiles(" +
         widthText(to, to.spec.integer("head_dim", 1)) + ")>";
}

std::string boolText(bool value) { return value ? "true" : "false"; }

/// Returns an expression for the lookup table that maps the distance of two
/// positions to a row of the table of biases. The program computes the lookup
/// table once.
std::string bucketsText(const KernelWriter &to, std::size_t table) {
  const std::vector<std::string> given = {
      to.extent(to.input(0), 1),
      to.extent(to.input(1), 1),
      to.names.offset(to.instruction.inputs[0], 1),
      to.extent(to.input(table), 0),
      to.count(to.spec.integer("max_distance", 0)),
      boolText(to.spec.integer("causal", 0) == 0)};
  std::string arguments;
  for (const std::string &one : given)
    arguments += (arguments.empty() ? "" : ", ") + one;
  return "table<std::int32_t>(now, " + quoted("biases " + arguments) +
         ", [&] { return biasRows(" + arguments + "); })";
}

/// Returns the number of heads in the last dimension of queries or keys. The
/// result is for one rank ("H / tp") if `isLocal`, else for all ranks ("H").
std::string headsText(const KernelWriter &to, const Tensor &tensor,
                      std::int64_t width, bool isLocal) {
  const Extent whole = to.names.whole(tensor, 2),
               own = to.names.local(tensor, 2);
  const std::int64_t heads = whole.value / width;
  std::string name = to.names.isConstant("H", heads)    ? "H"
                     : to.names.isConstant("KV", heads) ? "KV"
                                                        : "";
  if (name.empty())
    return to.count(isLocal ? own.value / width : heads);
  if (!isLocal || own.value == whole.value)
    return name;
  std::string ranks; // " / tp", for an extent "C / tp" or "H / tp * D"
  for (std::size_t at = own.text.find(" / "); at != std::string::npos;
       at = own.text.find(" / ", at + 1))
    ranks += own.text.substr(at, own.text.find(' ', at + 3) - at);
  return ranks.empty() ? to.count(own.value / width) : name + ranks;
}

/// Writes the declaration of `all`, which describes the heads of an attention.
/// \param table  the operand index of the table of biases
void writeHeads(const KernelWriter &to, std::size_t table) {
  const Tensor &q = to.input(0), &k = to.input(1);
  const std::int64_t width = to.spec.integer("head_dim", 1);
  if (width > kMostWidth)
    to.refuse("has head_dim " + to.count(width) +
              "; GPU kernels support at most " + to.count(kMostWidth));
  const std::string heads = headsText(to, q, width, true),
                    place = to.names.offset(q, 2);
  std::vector<std::string> members = {
      ".width = " + widthText(to, width),
      ".batch = " + to.extent(q, 0),
      ".queries = " + to.extent(q, 1),
      ".heads = " + heads,
      ".keys = " + to.extent(k, 1),
      ".keyHeads = " + headsText(to, k, width, true),
      ".causal = " + boolText(to.spec.integer("causal", 0) != 0),
      ".scale = " + to.names.real("scale", to.spec.number("scale", 1.0)),
      ".samples = " + to.names.span(q, 0),
      ".positions = " + to.names.span(q, 1),
      ".firstHead = " + (place == "0"
                             ? place
                             : to.names.place(q, 2) + " * " + grouped(heads)),
      ".allHeads = " + headsText(to, q, width, false),
      ".microBatch = now.microBatch"};
  if (to.instruction.inputs.size() > table) {
    members.push_back(".table = " + to.in(table));
    members.push_back(".buckets = " + bucketsText(to, table));
  }
  if (to.spec.find("softcap"))
    members.push_back(".softcap = " +
                      numberText(to.spec.number("softcap", 0.0)));
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
  to.callAs(
      ofWidths(to, "attentionGradOf"),
      {"{" + to.in(0), to.in(1), to.in(2), to.in(5) + "}", to.in(3), to.in(4),
       to.out(0), to.out(1), to.out(2), to.out(3),
       biased ? to.elements(to.output(3)) : "0", "all", to.masks(),
       to.scratch(to.of("attentionGradScratch") + "(all, " + boolText(biased) +
                  ", " + boolText(bytesOf(to.spec.inputs[0].type) == 2) + ", " +
                  boolText(to.spec.number("rate", 0.0) > 0.0) + ")")});
  to.text.close();
}

void writeRope(const KernelWriter &to) {
  const Tensor &from = to.input(0);
  const std::int64_t pairs = to.spec.integer("rotary_dim", 0) / 2;
  const std::string powers =
      numberText(to.spec.number("theta", 1e4)) + ", " + to.count(pairs);
  to.needs("rope.cuh");
  to.call(
      "rope",
      {to.in(0), to.out(0),
       "table<double>(now, " + quoted("rope " + powers) +
           ", [] { return ropeFrequencies(" + powers + "); })",
       to.extent(from, 0),
       "Rotation" +
           listText(std::vector<std::string>{
               to.extent(from, 1), to.names.offset(from, 1), to.extent(from, 2),
               widthText(to, to.spec.integer("head_dim", 1)), to.count(pairs),
               boolText(to.spec.integer("interleaved", 0) != 0),
               to.spec.integer("inverse", 0) != 0 ? "-1.0" : "1.0"})});
}

std::string sequenceText(const KernelWriter &to, const Tensor &tensor) {
  const std::string offset = to.names.offset(tensor, 1);
  return "Sequence{" + to.extent(tensor, 1) + ", " +
         (offset == "0" ? "0" : offset + " == 0 ? 0 : -1") + "}";
}

std::string tableText(const KernelWriter &to, const Tensor &tensor,
                      const Tensor &table) {
  const std::string own = to.names.offset(tensor, 1),
                    held = to.names.offset(table, 0);
  const bool isSame = own != "0" && held != "0" &&
                      tensor.split[1] == table.split[0] &&
                      tensor.shape[1] == table.shape[0];
  return "PositionTable{" + (isSame || own == held ? "0" : own + " - " + held) +
         ", " + to.extent(table, 0) + "}";
}

void writeFirst(const KernelWriter &to, const char *function,
                const Tensor &whole) {
  const Tensor &result = to.output(0);
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < to.instruction.inputs.size(); ++i)
    arguments.push_back(to.in(i));
  for (const std::string &one :
       {to.out(0), to.rows(result), to.width(result), sequenceText(to, whole)})
    arguments.push_back(one);
  to.needs("position.cuh");
  to.call(function, arguments);
}

void writePutFirstGrad(const KernelWriter &to) {
  const std::string sizes =
      "ColumnSizes" +
      listText(std::vector<std::string>{to.extent(to.input(0), 0), "1",
                                        to.extent(to.input(0), 2)});
  to.needs("position.cuh");
  to.call("putFirstGrad",
          {to.in(0), to.out(0), to.out(1), sizes,
           sequenceText(to, to.instruction.outputs[0]),
           to.scratch(to.of("columnScratch") + "(" + sizes + ", 1)")});
}

void writePosition(const KernelWriter &to) {
  const Tensor &from = to.input(0);
  to.needs("position.cuh");
  to.call("positionEmbedding",
          {to.in(0), to.in(1), to.out(0), to.rows(from), to.width(from),
           tableText(to, from, to.input(1)), to.extent(from, 1)});
}

void writePositionGrad(const KernelWriter &to) {
  const Tensor &from = to.instruction.inputs[0];
  to.needs("position.cuh");
  to.call("positionEmbeddingGrad",
          {to.in(0), to.out(0), tableText(to, from, to.instruction.outputs[0]),
           to.extent(from, 0), to.extent(from, 1), to.extent(from, 2)});
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
