//===- op_graph_json.cpp - A planning problem as a file -------------------===//

#include "planner/graph/op_graph_json.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "base/json_text.h"

namespace mtplan::planner {

using json = base::Json;
using nlohmann::ordered_json;

namespace {

using Names = std::vector<std::string>;

// The names are in the order of the enumerators, so that an index is a value.
const Names kTensorKinds{"activation", "parameter", "input"};
const Names kPhases{"forward", "backward"};
const Names kReductions{"sum", "max"};
const Names kClasses{"gemm", "attention", "memory"};
const Names kSplits = [] {
  Names names;
  for (int split = 0; split <= static_cast<int>(Split::hidden); ++split)
    names.emplace_back(nameOf(static_cast<Split>(split)));
  return names;
}();
const Names kPasses{"traffic",     "layer_norm",     "rms_norm",
                    "residual",    "activation",     "gated",
                    "rope",        "dropout",        "bias_gradient",
                    "logits_read", "logits_gradient"};

template <typename Enum>
const std::string &nameIn(const Names &names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

template <typename T, typename Write>
ordered_json listOf(const std::vector<T> &items, Write write) {
  ordered_json list = ordered_json::array();
  for (const T &item : items)
    list.push_back(write(item));
  return list;
}

ordered_json write(const Parameter &parameter) {
  return {
      {"name", parameter.name},
      {"shape", parameter.shape},
      {"splits", listOf(parameter.splits, [](Split s) { return nameOf(s); })},
      {"element_bytes", parameter.elementBytes},
      {"copies", parameter.copies},
      {"shared", parameter.shared},
      {"divisible", parameter.divisible}};
}

ordered_json write(const Tensor &tensor) {
  return {{"name", tensor.name},
          {"shape", tensor.shape},
          {"element_bytes", tensor.elementBytes},
          {"kind", nameIn(kTensorKinds, tensor.kind)},
          {"phase", nameIn(kPhases, tensor.phase)},
          {"parameter", tensor.parameter},
          {"batch_dim", tensor.batchDim}};
}

ordered_json write(const Factor &factor) {
  return {{"name", factor.name},
          {"size", factor.size},
          {"split", nameOf(factor.split)},
          {"divisible", factor.divisible},
          {"reduction", nameIn(kReductions, factor.reduction)},
          {"skew", factor.skew}};
}

ordered_json write(const Use &use) {
  ordered_json written = {{"tensor", use.tensor}, {"factors", use.factors}};
  if (use.lookedUp)
    written["looked_up"] = true;
  return written;
}

ordered_json write(const Op &op) {
  auto one = [](const auto &item) { return write(item); };
  ordered_json written = {{"name", op.name}, {"kind", op.kind}};
  if (!op.variant.empty())
    written["variant"] = op.variant;
  written.update({{"phase", nameIn(kPhases, op.phase)},
                  {"class", nameIn(kClasses, op.opClass)}});
  if (op.pass != PassKind::traffic)
    written["pass"] = nameIn(kPasses, op.pass);
  written.update({{"factors", listOf(op.factors, one)},
                  {"operands", listOf(op.operands, one)},
                  {"results", listOf(op.results, one)}});
  if (op.fusedOperand >= 0)
    written["follows"] = op.fusedOperand;
  written.update({{"addends", op.addends},
                  {"linear_groups", op.linearGroups},
                  {"flops", op.flops.value},
                  {"m", op.m},
                  {"n", op.n},
                  {"k", op.k},
                  {"batch", op.batch}});
  return written;
}

ordered_json write(const Accumulation &sum) {
  return {{"tensor", sum.tensor}, {"parameter", sum.parameter}};
}

ordered_json write(const SegmentGraph &segment) {
  auto one = [](const auto &item) { return write(item); };
  return {{"name", segment.name},
          {"repeat", segment.repeat},
          {"first", segment.first},
          {"tensors", listOf(segment.tensors, one)},
          {"ops", listOf(segment.ops, one)},
          {"carried_in", segment.carriedIn},
          {"carried_out", segment.carriedOut},
          {"gradient_in", segment.gradientIn},
          {"gradient_out", segment.gradientOut},
          {"accumulations", listOf(segment.accumulations, one)},
          {"reported", segment.reported}};
}

// Returns whether `value` is printed on one line: values without lists of
// objects are.
bool isLeaf(const ordered_json &value) {
  if (!value.is_structured())
    return true;
  for (const ordered_json &child : value) {
    if (value.is_array() && child.is_object())
      return false;
    if (!isLeaf(child))
      return false;
  }
  return true;
}

void print(const ordered_json &value, const std::string &indent,
           std::string &text) {
  if (isLeaf(value)) {
    text += value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    return;
  }
  bool object = value.is_object(), first = true;
  text += object ? "{" : "[";
  for (const auto &[key, child] : value.items()) {
    text += (first ? "\n" : ",\n") + indent + ' ';
    first = false;
    if (object)
      text += ordered_json(key).dump() + ": ";
    print(child, indent + ' ', text);
  }
  text += '\n' + indent + (object ? '}' : ']');
}

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();
// The largest size of a dimension. The product of two sizes fits in 64 bits.
constexpr std::int64_t kMostSize = std::int64_t{1} << 31;

class GraphReader {
public:
  ModelGraph read(const json &file) {
    ModelGraph graph;
    base::JsonFields fields(file, "", errors);
    graph.name = fields.text("name");
    graph.sequence = fields.integer("sequence", 0, kMostSize, 0);
    for (const auto &[value, pointer] : fields.elements("parameters", true))
      graph.parameters.push_back(readParameter(*value, pointer));
    for (const auto &[value, pointer] : fields.elements("segments", true))
      graph.segments.push_back(readSegment(*value, pointer));
    fields.rejectOthers();
    return graph;
  }

  base::JsonErrors errors;

private:
  std::vector<int> indices(base::JsonFields &fields, const std::string &key,
                           bool required = false) {
    std::vector<std::int64_t> wide =
        fields.integers(key, -1, kMostInt, required);
    return {wide.begin(), wide.end()};
  }

  int integer(base::JsonFields &fields, const std::string &key,
              std::int64_t least, std::optional<std::int64_t> fallback) {
    return static_cast<int>(fields.integer(key, least, kMostInt, fallback));
  }

  Parameter readParameter(const json &object, const std::string &pointer) {
    Parameter parameter;
    base::JsonFields fields(object, pointer, errors);
    parameter.name = fields.text("name");
    parameter.shape = fields.integers("shape", 1, kMostSize, true);
    for (const auto &[value, where] : fields.elements("splits", true)) {
      auto name = value->is_string()
                      ? std::ranges::find(kSplits, value->get<std::string>())
                      : kSplits.end();
      if (name == kSplits.end())
        errors.push_back(where + ": is no split's name");
      else
        parameter.splits.push_back(static_cast<Split>(name - kSplits.begin()));
    }
    parameter.elementBytes = integer(fields, "element_bytes", 1, 2);
    parameter.copies = integer(fields, "copies", 1, 1);
    parameter.shared = fields.boolean("shared", false);
    parameter.divisible = fields.boolean("divisible", true);
    fields.rejectOthers();
    return parameter;
  }

  Tensor readTensor(const json &object, const std::string &pointer) {
    Tensor tensor;
    base::JsonFields fields(object, pointer, errors);
    tensor.name = fields.text("name");
    tensor.shape = fields.integers("shape", 1, kMostSize, true);
    tensor.elementBytes = integer(fields, "element_bytes", 1, 2);
    tensor.kind =
        static_cast<TensorKind>(fields.oneOf("kind", kTensorKinds, 0));
    tensor.phase = static_cast<Phase>(fields.oneOf("phase", kPhases, 0));
    tensor.parameter = integer(fields, "parameter", -1, -1);
    tensor.batchDim = integer(fields, "batch_dim", -1, -1);
    fields.rejectOthers();
    return tensor;
  }

  Factor readFactor(const json &object, const std::string &pointer) {
    Factor factor;
    base::JsonFields fields(object, pointer, errors);
    factor.name = fields.text("name");
    factor.size = fields.integer("size", 1, kMostSize);
    factor.split = static_cast<Split>(fields.oneOf("split", kSplits));
    factor.divisible = fields.boolean("divisible", true);
    factor.reduction =
        static_cast<Reduction>(fields.oneOf("reduction", kReductions, 0));
    factor.skew = fields.number("skew", base::NumberRange{}, 0);
    fields.rejectOthers();
    return factor;
  }

  std::vector<Use> readUses(base::JsonFields &fields, const std::string &key) {
    std::vector<Use> uses;
    for (const auto &[value, pointer] : fields.elements(key, true)) {
      base::JsonFields members(*value, pointer, errors);
      Use use;
      use.tensor = integer(members, "tensor", 0, std::nullopt);
      use.factors = indices(members, "factors", true);
      use.lookedUp = members.boolean("looked_up", false);
      members.rejectOthers();
      uses.push_back(std::move(use));
    }
    return uses;
  }

  Op readOp(const json &object, const std::string &pointer) {
    Op op;
    base::JsonFields fields(object, pointer, errors);
    op.name = fields.text("name");
    op.kind = fields.text("kind", "");
    op.variant = fields.text("variant", "");
    op.phase = static_cast<Phase>(fields.oneOf("phase", kPhases, 0));
    op.opClass = static_cast<OpClass>(fields.oneOf("class", kClasses));
    op.pass = static_cast<PassKind>(fields.oneOf("pass", kPasses, 0));
    for (const auto &[value, where] : fields.elements("factors", true))
      op.factors.push_back(readFactor(*value, where));
    op.operands = readUses(fields, "operands");
    op.results = readUses(fields, "results");
    op.fusedOperand = integer(fields, "follows", -1, -1);
    op.addends = indices(fields, "addends");
    for (const auto &[value, where] : fields.elements("linear_groups", false)) {
      std::vector<int> group;
      if (!value->is_array())
        errors.push_back(where + ": must be an array of operands");
      else
        for (std::size_t i = 0; i < value->size(); ++i)
          group.push_back(static_cast<int>(
              base::readInteger((*value)[i], base::childPointer(where, i), 0,
                                kMostInt, errors)
                  .value_or(0)));
      op.linearGroups.push_back(std::move(group));
    }
    op.flops = Flops{fields.number("flops", base::NumberRange{}, 0)};
    op.m = indices(fields, "m");
    op.n = indices(fields, "n");
    op.k = indices(fields, "k");
    op.batch = indices(fields, "batch");
    fields.rejectOthers();
    return op;
  }

  SegmentGraph readSegment(const json &object, const std::string &pointer) {
    SegmentGraph segment;
    base::JsonFields fields(object, pointer, errors);
    segment.name = fields.text("name");
    segment.repeat = integer(fields, "repeat", 1, 1);
    segment.first = integer(fields, "first", 0, 0);
    for (const auto &[value, where] : fields.elements("tensors", true))
      segment.tensors.push_back(readTensor(*value, where));
    for (const auto &[value, where] : fields.elements("ops", true))
      segment.ops.push_back(readOp(*value, where));
    segment.carriedIn = indices(fields, "carried_in");
    segment.carriedOut = indices(fields, "carried_out");
    segment.gradientIn = indices(fields, "gradient_in");
    segment.gradientOut = indices(fields, "gradient_out");
    for (const auto &[value, where] : fields.elements("accumulations", false)) {
      base::JsonFields members(*value, where, errors);
      Accumulation sum;
      sum.tensor = integer(members, "tensor", 0, std::nullopt);
      sum.parameter = integer(members, "parameter", 0, std::nullopt);
      members.rejectOthers();
      segment.accumulations.push_back(sum);
    }
    segment.reported = indices(fields, "reported");
    fields.rejectOthers();
    return segment;
  }
};

} // namespace

std::string formatModelGraph(const ModelGraph &graph) {
  auto one = [](const auto &item) { return write(item); };
  ordered_json file{{"name", graph.name},
                    {"sequence", graph.sequence},
                    {"parameters", listOf(graph.parameters, one)},
                    {"segments", listOf(graph.segments, one)}};
  std::string text;
  print(file, "", text);
  return text + '\n';
}

ModelGraph parseModelGraph(const std::string &text) {
  GraphReader reader;
  ModelGraph graph;
  try {
    graph = reader.read(base::parseJson(text));
  } catch (const base::JsonError &error) {
    throw GraphError(error.what());
  }
  // The check is skipped after read errors, which it would report again.
  base::JsonErrors errors =
      reader.errors.empty() ? check(graph) : std::move(reader.errors);
  if (!errors.empty())
    throw GraphError(base::joinLines(errors));
  shareSegments(graph);
  return graph;
}

} // namespace mtplan::planner
