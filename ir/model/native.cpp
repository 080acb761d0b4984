//===- native.cpp - Reads mtplan's own model format -----------------------===//
//
// Reads the chain of segments. If a value could not be created, its users
// report no errors of their own, so that one mistake yields one message.
//
//===----------------------------------------------------------------------===//

#include <algorithm>

#include "base/nearest_word.h"
#include "ir/model/load.h"
#include "ir/model/module_facts.h"
#include "ir/model/native_operators.h"

using namespace mlir;

namespace mtplan::ir {

namespace {

class NativeReader {
public:
  NativeReader(MLIRContext &context, Fields &rootFields,
               const ShapeOverrides &shapeOverrides)
      : overrides(shapeOverrides), root(rootFields),
        findings(rootFields.findings), names(context, rootFields, overrides),
        builder(context, findings.file,
                elementTypeOf(context, overrides.elementType)) {}

  NativeNames &declared() { return names; }

  OwningOpRef<ModuleOp> read(std::int64_t &layers);

private:
  const ShapeOverrides &overrides;
  Fields &root;
  Findings &findings;
  NativeNames names;
  ModelBuilder builder;

  std::map<std::string, NamedValue> local; // values of the current segment
  // These maps hold the JSON pointer of each operator label and segment name.
  std::map<std::string, std::string> labels, segmentNames;
  std::vector<NamedValue> carried;
  std::int64_t layerCount = 0;

  void locate(const std::string &pointer) {
    builder.location = NameLoc::get(builder.ops.getStringAttr(pointer));
  }
  void readSegment(Fields &fields, bool last);
  void takeCarried(Fields &fields, ValueRange arguments);
  void readOperators(Fields &fields, bool repeats);
  void readOperator(Fields &fields, bool repeats);
  NamedValue make(Fields &fields, NativeOperator &op);
  void readYields(Fields &fields, bool last);
  void checkCarriedOver(Fields &fields, const std::vector<NamedValue> &before);
  std::optional<NamedValue> lookUp(const std::string &name,
                                   const std::string &pointer);
  void defineLocal(const std::string &name, const std::string &pointer,
                   NamedValue value);
};

std::int64_t countRepeating(const JsonValue &segments) {
  return std::count_if(segments.items.begin(), segments.items.end(),
                       [](const JsonValue &item) {
                         const JsonValue *repeat = item.find("repeat");
                         return repeat && repeat->kind != JsonValue::Kind::null;
                       });
}

OwningOpRef<ModuleOp> NativeReader::read(std::int64_t &layers) {
  const JsonValue *segments = root.value("segments", /*required=*/true);
  if (!segments)
    return {};
  if (segments->kind != JsonValue::Kind::array || segments->items.empty()) {
    root.error("segments", "must be an array of at least one segment, but is " +
                               segments->describe());
    return {};
  }
  if (std::int64_t repeating = countRepeating(*segments);
      overrides.layers && repeating != 1)
    root.error("segments", "the number of layers can be changed where exactly "
                           "1 segment has \"repeat\", but " +
                               std::to_string(repeating) + " have");
  for (std::size_t i = 0; i < segments->items.size(); ++i) {
    std::string pointer = root.at("segments") + '/' + std::to_string(i);
    if (!findings.expectObject(segments->items[i], pointer))
      continue;
    Fields fields(segments->items[i], pointer, findings);
    readSegment(fields, i + 1 == segments->items.size());
  }
  if (findings.errors.empty())
    names.rejectUnused();
  layers = std::max<std::int64_t>(1, layerCount);
  (*builder.module)
      ->setAttr(kLayersAttrName, builder.ops.getI64IntegerAttr(layers));
  return std::move(builder.module);
}

void NativeReader::readSegment(Fields &fields, bool last) {
  std::string name = fields.name("name");
  if (auto [entry, isNew] = segmentNames.emplace(name, fields.here());
      !isNew && !name.empty())
    fields.error("name", "the name is taken by " + entry->second);
  bool repeats = fields.has("repeat");
  std::int64_t repeat = fields.sizeIfAny("repeat", kMaxLayers).value_or(1);
  if (repeats && overrides.layers)
    repeat = *overrides.layers;
  if (repeats)
    layerCount += repeat;
  std::int64_t first = 0;
  if (const JsonValue *value = fields.value("first")) {
    if (value->integer && *value->integer >= 0 && *value->integer < kSizeLimit)
      first = *value->integer;
    else
      fields.error("first", "must be an integer from 0 to " +
                                std::to_string(kSizeLimit - 1) + ", but is " +
                                value->describe());
  }

  local.clear();
  locate(fields.here());
  ValueRange arguments = builder.beginSegment(name, repeat, first);
  std::vector<NamedValue> before = carried;
  takeCarried(fields, arguments);
  readOperators(fields, repeats);
  readYields(fields, last);
  if (repeats)
    checkCarriedOver(fields, before);
  fields.rejectUnread();
}

void NativeReader::takeCarried(Fields &fields, ValueRange arguments) {
  std::vector<std::string> takes = fields.texts("takes");
  if (takes.size() != carried.size())
    fields.error("takes", std::to_string(takes.size()) +
                              " names, but the segment before yields " +
                              std::to_string(carried.size()) + " values");
  // A value that could not be created has no block argument.
  auto argument = arguments.begin();
  for (std::size_t i = 0; i < takes.size(); ++i) {
    NamedValue value;
    if (i < carried.size()) {
      value.dims = carried[i].dims;
      if (carried[i].value && argument != arguments.end())
        value.value = *argument++;
    }
    defineLocal(takes[i], fields.at("takes") + '/' + std::to_string(i), value);
  }
}

void NativeReader::readOperators(Fields &fields, bool repeats) {
  const JsonValue *operators = fields.value("operators", /*required=*/true);
  if (!operators)
    return;
  if (operators->kind != JsonValue::Kind::array) {
    fields.error("operators",
                 "must be an array, but is " + operators->describe());
    return;
  }
  for (std::size_t i = 0; i < operators->items.size(); ++i) {
    std::string pointer = fields.at("operators") + '/' + std::to_string(i);
    if (!findings.expectObject(operators->items[i], pointer))
      continue;
    Fields opFields(operators->items[i], pointer, findings);
    readOperator(opFields, repeats);
  }
}

void NativeReader::readOperator(Fields &fields, bool repeats) {
  NativeOperator op;
  op.pointer = fields.here();
  op.declared = &names;
  op.name = fields.name("op");
  op.label = fields.name("name");
  if (auto [entry, isNew] = labels.emplace(op.label, op.pointer);
      !isNew && !op.label.empty())
    fields.error("name",
                 "the name \"" + op.label + "\" is taken by " + entry->second);
  if (repeats && !op.label.empty() && op.label.find('*') == op.label.npos)
    fields.error("name", "needs a * where the number of the layer goes, as "
                         "in \"h.*.fc1\", but is \"" +
                             op.label + '"');
  std::string output = fields.text("output", op.label);
  locate(op.pointer);
  NamedValue made = make(fields, op);
  fields.rejectUnread();
  if (!output.empty())
    defineLocal(output, fields.at(fields.has("output") ? "output" : "name"),
                made);
}

NamedValue NativeReader::make(Fields &fields, NativeOperator &op) {
  const std::size_t before = findings.errors.size();
  op.operandNames = fields.texts("inputs", /*required=*/true);
  bool known = findings.errors.size() == before;
  for (std::size_t i = 0; i < op.operandNames.size(); ++i) {
    auto value = lookUp(op.operandNames[i],
                        fields.at("inputs") + '/' + std::to_string(i));
    known = known && value && value->value;
    op.operands.push_back(value.value_or(NamedValue()));
  }

  static const JsonValue kNone;
  const JsonValue *given = fields.value("attributes");
  if (given && !findings.expectObject(*given, fields.at("attributes")))
    return {};
  Fields attributes(given ? *given : kNone, fields.at("attributes"), findings);
  if (op.name == "einsum") {
    std::string equation = fields.name("equation");
    attributes.rejectUnread();
    return known && !equation.empty()
               ? makeEinsum(builder, op, equation, findings)
               : NamedValue();
  }
  std::vector<std::string> all = {"einsum"};
  for (const OperatorRule &rule : operatorRules()) {
    if (op.name == rule.name)
      return known ? makeOperator(builder, rule, op, attributes) : NamedValue();
    all.emplace_back(rule.name);
  }
  if (!op.name.empty())
    fields.error("op", unknownName("operator", op.name, all));
  return {};
}

void NativeReader::readYields(Fields &fields, bool last) {
  std::vector<std::string> yields = fields.texts("yields", /*required=*/true);
  carried.clear();
  SmallVector<Value, 4> values;
  for (std::size_t i = 0; i < yields.size(); ++i) {
    std::string pointer = fields.at("yields") + '/' + std::to_string(i);
    auto value = lookUp(yields[i], pointer);
    carried.push_back(value.value_or(NamedValue()));
    if (carried.back().value)
      values.push_back(carried.back().value);
    bool known = value && value->value;
    if (last && known && !value->dims.empty())
      findings.error(pointer, "the last segment yields the loss, a scalar, but "
                              "\"" +
                                  yields[i] + "\" has " +
                                  dimNames(value->dims));
  }
  if (last && yields.size() != 1)
    fields.error("yields", "the last segment yields the loss alone, but here "
                           "are " +
                               std::to_string(yields.size()) + " values");
  locate(fields.here());
  if (last && values.size() == 1)
    builder.endChain(values.front());
  else
    builder.endSegment(values);
}

void NativeReader::checkCarriedOver(Fields &fields,
                                    const std::vector<NamedValue> &before) {
  // If a value could not be created, the error has already been reported.
  auto isMissing = [](const NamedValue &value) { return !value.value; };
  if (std::any_of(before.begin(), before.end(), isMissing) ||
      std::any_of(carried.begin(), carried.end(), isMissing))
    return;
  if (before.size() != carried.size()) {
    fields.error("yields", std::to_string(carried.size()) +
                               " values, but the next layer takes " +
                               std::to_string(before.size()));
    return;
  }
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i].dims != carried[i].dims)
      findings.error(fields.at("yields") + '/' + std::to_string(i),
                     "has " + dimNames(carried[i].dims) +
                         ", but the next layer takes " +
                         dimNames(before[i].dims));
}

// Returns the value called `name`. The first use of an input or a parameter in
// a segment creates the operator that reads it.
std::optional<NamedValue> NativeReader::lookUp(const std::string &name,
                                               const std::string &pointer) {
  if (auto found = local.find(name); found != local.end())
    return found->second;
  const Declaration *declaration = names.find(name);
  if (!declaration) {
    std::vector<std::string> known = names.allNames();
    for (const auto &[localName, ignored] : local)
      if (!names.find(localName))
        known.push_back(localName);
    known = base::nearestFirst(name, std::move(known));
    known.resize(std::min<std::size_t>(known.size(), 5));
    findings.error(pointer, unknownName("tensor", name, known));
    return std::nullopt;
  }
  declaration->isUsed = true;
  NamedValue value;
  value.dims = declaration->dims;
  value.parameter = declaration->parameter;
  if (!declaration->valid)
    return value;
  RankedTensorType type = typeOf(value.dims, declaration->element);
  OpBuilder &ops = builder.ops;
  if (declaration->parameter) {
    SmallVector<std::int64_t, 4> used;
    for (const NamedDim *dim : value.dims)
      used.push_back(dim->used);
    value.value = ops.create<ParameterOp>(
        builder.location, type, name, declaration->init, LayoutAttr(),
        used == type.getShape() ? DenseI64ArrayAttr()
                                : ops.getDenseI64ArrayAttr(used));
  } else {
    SmallVector<StringRef, 4> roles;
    for (const NamedDim *dim : value.dims)
      roles.push_back(dim->role == DimRole::batch      ? "batch"
                      : dim->role == DimRole::sequence ? "sequence"
                                                       : "other");
    IntegerAttr limit = declaration->limit
                            ? ops.getI64IntegerAttr(*declaration->limit)
                            : IntegerAttr();
    value.value =
        ops.create<InputOp>(builder.location, type, name,
                            ops.getStrArrayAttr(roles), limit, LayoutAttr());
  }
  local[name] = value;
  return value;
}

void NativeReader::defineLocal(const std::string &name,
                               const std::string &pointer, NamedValue value) {
  if (const Declaration *other = names.find(name))
    findings.error(pointer,
                   "the name \"" + name + "\" is taken by " + other->pointer);
  else if (!local.emplace(name, value).second)
    findings.error(pointer, "the name \"" + name +
                                "\" is taken in this segment already");
}

} // namespace

LoadedModel loadNative(MLIRContext &context, const JsonValue &root,
                       const ShapeOverrides &overrides, Findings &findings) {
  LoadedModel loaded;
  loaded.family = "native";
  Fields fields(root, "", findings);
  const JsonValue *version = fields.value("mtplan", /*required=*/true);
  if (version && version->integer != kNativeVersion)
    fields.error("mtplan", "must be the version " +
                               std::to_string(kNativeVersion) + ", but is " +
                               version->describe());
  loaded.name = fields.text("name", "");
  fields.ignore({"$schema", "comment"});

  NativeReader reader(context, fields, overrides);
  loaded.module = reader.read(loaded.layers);
  fields.rejectUnread();
  loaded.sequence = reader.declared().sequence;
  loaded.globalBatch = reader.declared().globalBatch;
  // Sets the sizes of the vocabulary and counts the padding of all parameters.
  for (const Declaration &declared : reader.declared().declarations) {
    std::int64_t stored = 1, used = 1;
    for (const NamedDim *dim : declared.dims) {
      if (stored > (std::int64_t{1} << 58) / dim->size)
        return loaded; // checkModule() reports the overflow.
      stored *= dim->size;
      used *= dim->used;
      if (dim->role == DimRole::vocabulary) {
        loaded.vocabulary = dim->used;
        loaded.paddedVocabulary = dim->size;
      }
    }
    if (declared.parameter)
      loaded.paddingParameters += stored - used;
  }
  return loaded;
}

} // namespace mtplan::ir
