//===- native_operators.cpp - Creates operators by name -------------------===//

#include "ir/model/native_operators.h"

#include <cmath>
#include <sstream>

using namespace mlir;

namespace mtplan::ir {

std::string dimNames(const NamedDims &dims) {
  std::string text = "[";
  for (const NamedDim *dim : dims)
    text += (text.size() > 1 ? ", " : "") + dim->name;
  return text + ']';
}

RankedTensorType typeOf(const NamedDims &dims, Type element) {
  SmallVector<std::int64_t, 4> shape;
  for (const NamedDim *dim : dims)
    shape.push_back(dim->size);
  return RankedTensorType::get(shape, element);
}

namespace {

std::vector<std::string> wordsOf(const char *pattern) {
  std::istringstream stream(pattern);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

// Maps each word of an operator's patterns to the dimensions that the word
// matches.
using Bindings = std::map<std::string, NamedDims>;

// Matches one operand with its pattern and binds new words. Returns an error
// message, or an empty string.
std::string bind(const OperandRule &rule, const NamedValue &operand,
                 Bindings &bound) {
  std::vector<std::string> words = wordsOf(rule.pattern);
  bool integers = !words.empty() && words.front() == "#";
  if (integers)
    words.erase(words.begin());
  Type element =
      llvm::cast<RankedTensorType>(operand.value.getType()).getElementType();
  if (element.isInteger() != integers)
    return std::string("must be ") + (integers ? "integers" : "floats") +
           ", but is " + (integers ? "floats" : "integers");

  bool open = !words.empty() && words.front() == "...";
  const std::size_t letters = words.size() - (open ? 1 : 0);
  if (operand.dims.size() < letters ||
      (!open && operand.dims.size() != letters))
    return "has " + std::to_string(operand.dims.size()) + " dimensions, " +
           dimNames(operand.dims) + ", but needs " +
           (open ? "at least " : "exactly ") + std::to_string(letters);

  auto next = operand.dims.begin();
  for (const std::string &word : words) {
    auto length = static_cast<std::ptrdiff_t>(
        word == "..." ? operand.dims.size() - letters : 1);
    NamedDims dims(next, next + length);
    next += length;
    auto [entry, isNew] = bound.emplace(word, dims);
    if (!isNew && entry->second != dims)
      return "has " + dimNames(dims) + " where earlier operands have " +
             dimNames(entry->second);
  }
  return "";
}

// Reads and checks one operator's attributes, in the order in which its
// OperatorRule lists them.
class AttributeReader {
public:
  AttributeReader(ModelBuilder &modelBuilder, const NativeOperator &nativeOp,
                  Fields &attributeFields)
      : builder(modelBuilder), op(nativeOp), fields(attributeFields) {}

  SmallVector<NamedAttribute, 8> attributes;
  /// Maps the name of an AttributeKind::dimension attribute to the dimension
  /// that the attribute selects.
  Bindings named;
  /// Holds the number of trailing dimensions that the result keeps, the value
  /// of an AttributeKind::keep attribute, or -1 if there is no such attribute.
  std::int64_t keep = -1;

  void read(const OperatorRule &rule) {
    put("label", builder.ops.getStringAttr(op.label));
    for (const AttributeRule &attribute : rule.attributes)
      if (!attribute.required || fields.value(attribute.name, true))
        read(attribute);
    fields.rejectUnread();
    checkHeads();
  }

private:
  ModelBuilder &builder;
  const NativeOperator &op;
  Fields &fields;
  std::int64_t headDim = 0;

  void put(llvm::StringRef name, Attribute value) {
    attributes.push_back(builder.ops.getNamedAttr(name, value));
  }
  void putCount(llvm::StringRef name, std::int64_t value) {
    put(name, builder.ops.getI64IntegerAttr(value));
  }

  void read(const AttributeRule &rule) {
    switch (rule.kind) {
    case AttributeKind::real: {
      double fallback = rule.fallback;
      if (rule.name == std::string_view("scale") && headDim > 0)
        fallback = 1.0 / std::sqrt(static_cast<double>(headDim));
      put(rule.name, builder.ops.getF64FloatAttr(fields.number(
                         rule.name, fallback, rule.low, rule.high)));
      return;
    }
    case AttributeKind::count: {
      // The default of an optional count (`rotary_dim`) is the width of a head.
      std::int64_t count = fields.sizeIfAny(rule.name).value_or(headDim);
      if (rule.name == std::string_view("head_dim"))
        headDim = count;
      putCount(rule.name, count);
      return;
    }
    case AttributeKind::flag:
      // A required flag (`causal`) is a BoolAttr, an optional one
      // (`interleaved`) a UnitAttr.
      if (bool flag = fields.flag(rule.name, false); rule.required)
        put(rule.name, builder.ops.getBoolAttr(flag));
      else if (flag)
        put(rule.name, builder.ops.getUnitAttr());
      return;
    case AttributeKind::mask:
      put(rule.name,
          builder.ops.getStringAttr(fields.text(rule.name, op.label)));
      return;
    case AttributeKind::classes:
      readClasses(rule.name);
      return;
    case AttributeKind::activation:
      readActivation(rule.name);
      return;
    case AttributeKind::keep:
      readKeep(rule.name);
      return;
    case AttributeKind::dimension:
      readDimension(rule.name);
      return;
    }
  }

  void readClasses(const char *name) {
    const NamedDims &logits = op.operands.front().dims;
    std::int64_t size = logits.empty() ? 1 : logits.back()->size;
    std::int64_t used = logits.empty() ? 1 : logits.back()->used;
    std::int64_t classes = fields.sizeIfAny(name).value_or(used);
    if (classes > size)
      fields.error(name, std::to_string(classes) + " classes, but only " +
                             std::to_string(size) + " logits");
    putCount(name, classes);
  }

  void readActivation(const char *name) {
    std::string word = fields.name(name);
    if (auto kind = symbolizeActivation(word)) {
      put(name, ActivationAttr::get(builder.ops.getContext(), *kind));
      return;
    }
    std::vector<std::string> known;
    for (std::uint32_t i = 0; i <= getMaxEnumValForActivation(); ++i)
      if (auto kind = symbolizeActivation(i))
        known.push_back(stringifyActivation(*kind).str());
    if (!word.empty())
      fields.error(name, unknownName("activation", word, known));
  }

  void readKeep(const char *name) {
    const JsonValue *value = fields.value(name, true);
    auto rank = static_cast<std::int64_t>(op.operands.front().dims.size());
    if (value && value->integer && *value->integer >= 0 &&
        *value->integer <= rank)
      keep = *value->integer;
    else if (value)
      fields.error(name, "must be an integer from 0 to the operand's " +
                             std::to_string(rank) + " dimensions, but is " +
                             value->describe());
  }

  void readDimension(const char *name) {
    std::string word = fields.name(name);
    if (const NamedDim *dim = op.declared->findDim(word))
      named[name] = {dim};
    else if (!word.empty())
      fields.error(name,
                   unknownName("dimension", word, op.declared->dimNames()));
  }

  void checkHeads() {
    if (headDim < 1)
      return;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const NamedDim *width = op.operands[i].dims.back();
      if (width->size % headDim != 0)
        fields.error("head_dim", std::to_string(headDim) +
                                     " does not divide the width of \"" +
                                     op.operandNames[i] + "\", " + width->name +
                                     " = " + std::to_string(width->size));
    }
  }
};

} // namespace

NamedValue makeOperator(ModelBuilder &builder, const OperatorRule &rule,
                        const NativeOperator &op, Fields &attributes) {
  Findings &findings = attributes.findings;
  const std::size_t before = findings.errors.size();
  if (op.operands.size() != rule.operands.size()) {
    std::vector<std::string> names;
    for (const OperandRule &operand : rule.operands)
      names.emplace_back(operand.name);
    findings.error(op.pointer + "/inputs",
                   std::to_string(op.operands.size()) + " given, but " +
                       rule.name + " takes " + std::to_string(names.size()) +
                       ": " + listOf(names));
    return {};
  }
  Bindings bound;
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    if (std::string problem = bind(rule.operands[i], op.operands[i], bound);
        !problem.empty())
      findings.error(op.pointer + "/inputs/" + std::to_string(i),
                     std::string(rule.operands[i].name) + " of " + rule.name +
                         ", \"" + op.operandNames[i] + "\", " + problem);
  if (findings.errors.size() != before)
    return {};
  AttributeReader reader(builder, op, attributes);
  reader.read(rule);
  if (findings.errors.size() != before)
    return {};

  bound.merge(reader.named);
  NamedValue result;
  for (const std::string &word : wordsOf(rule.result)) {
    const NamedDims &dims = bound[word];
    result.dims.insert(result.dims.end(), dims.begin(), dims.end());
  }
  if (reader.keep >= 0)
    result.dims.erase(result.dims.begin(), result.dims.end() - reader.keep);

  Type single = builder.ops.getF32Type(), element = single;
  if (rule.element == ResultElement::i32)
    element = builder.ops.getI32Type();
  else if (rule.element != ResultElement::f32)
    element = llvm::cast<RankedTensorType>(
                  op.operands[rule.element == ResultElement::ofSecond ? 1 : 0]
                      .value.getType())
                  .getElementType();
  OperationState state(builder.location, "mtp." + std::string(rule.name));
  for (const NamedValue &operand : op.operands)
    state.addOperands(operand.value);
  state.addAttributes(reader.attributes);
  state.addTypes(typeOf(result.dims, element));
  if (rule.name == std::string_view("attention")) {
    // The second result, `lse`, has one number per query and head.
    SmallVector<std::int64_t, 4> lse(shapeOf(op.operands[0].value));
    for (const NamedAttribute &attribute : reader.attributes)
      if (attribute.getName() == "head_dim")
        lse.back() /= llvm::cast<IntegerAttr>(attribute.getValue()).getInt();
    state.addTypes(RankedTensorType::get(lse, single));
  }
  result.value = builder.ops.create(state)->getResult(0);
  return result;
}

const std::vector<OperatorRule> &operatorRules() {
  using K = AttributeKind;
  using E = ResultElement;
  static const AttributeRule kEpsilon = {"epsilon", K::real, false,
                                         0.0,       1.0,     1.0e-5};
  static const AttributeRule kRate = {"rate", K::real};
  static const AttributeRule kMask = {"mask", K::mask};
  static const AttributeRule kTopK = {"top_k", K::count, true};
  static const AttributeRule kClasses = {"classes", K::classes};
  static const AttributeRule kHeadDim = {"head_dim", K::count, true};
  static const std::vector<OperatorRule> kRules = {
      {"add", {{"lhs", "..."}, {"rhs", "..."}}, "..."},
      {"mul", {{"lhs", "..."}, {"rhs", "..."}}, "..."},
      {"scale",
       {{"input", "..."}},
       "...",
       {{"factor", K::real, true, -1.0e30, 1.0e30}}},
      {"logit_softcap",
       {{"input", "..."}},
       "...",
       {{"cap", K::real, true, 1.0e-30, 1.0e30}}},
      {"dropout", {{"input", "..."}}, "...", {{"rate", K::real, true}, kMask}},
      {"activation",
       {{"input", "..."}},
       "...",
       {{"kind", K::activation, true}}},
      {"swiglu", {{"gate", "..."}, {"up", "..."}}, "..."},
      {"layer_norm",
       {{"input", "... d"}, {"gamma", "d"}, {"beta", "d"}},
       "... d",
       {kEpsilon}},
      {"rms_norm", {{"input", "... d"}, {"gamma", "d"}}, "... d", {kEpsilon}},
      {"softmax", {{"input", "... d"}}, "... d"},
      {"sum", {{"input", "..."}}, "...", {{"keep", K::keep, true}}},
      {"embedding",
       {{"ids", "# ..."}, {"table", "v d"}},
       "... d",
       {},
       E::ofSecond},
      {"position_embedding", {{"input", "b s d"}, {"table", "p d"}}, "b s d"},
      {"put_first", {{"input", "b s d"}, {"vector", "d"}}, "b s d"},
      {"take_first", {{"input", "b s d"}}, "b d"},
      {"rope",
       {{"input", "b s q"}},
       "b s q",
       {kHeadDim,
        {"rotary_dim", K::count},
        {"theta", K::real, false, 1.0e-3, 1.0e15, 10000.0},
        {"interleaved", K::flag}}},
      {"attention",
       {{"query", "b s q"}, {"key", "b t k"}, {"value", "b t k"}},
       "b s q",
       {kHeadDim,
        {"causal", K::flag, true},
        {"scale", K::real, false, -1.0e30, 1.0e30},
        kRate,
        kMask}},
      {"vocab_max", {{"logits", "... v"}}, "...", {kClasses}, E::f32},
      {"vocab_sum_exp",
       {{"logits", "... v"}, {"maximum", "..."}},
       "...",
       {kClasses},
       E::f32},
      {"vocab_pick",
       {{"logits", "... v"}, {"targets", "# ..."}},
       "...",
       {},
       E::f32},
      {"token_loss",
       {{"maximum", "..."},
        {"sum_exp", "..."},
        {"picked", "..."},
        {"targets", "# ..."},
        {"count", ""}},
       "",
       {},
       E::f32},
      {"moe_gate",
       {{"logits", "b s e"}},
       "b s e",
       {kTopK, {"normalise", K::flag}}},
      {"moe_slots", {{"logits", "b s e"}}, "b s e", {kTopK}, E::i32},
      {"moe_dispatch",
       {{"input", "b s d"}, {"slots", "# b s e"}},
       "e b places d",
       {{"places", K::dimension, true}}},
      {"moe_combine",
       {{"input", "e b c d"}, {"gates", "b s e"}, {"slots", "# b s e"}},
       "b s d"},
      {"balance_loss",
       {{"logits", "b s e"}, {"count", ""}},
       "",
       {kTopK, {"coefficient", K::real, true, 0.0, 1.0e30}},
       E::f32}};
  return kRules;
}

} // namespace mtplan::ir
