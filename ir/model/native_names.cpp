//===- native_names.cpp - Declarations of a native model ------------------===//

#include "ir/model/native_names.h"

#include <algorithm>

#include "mlir/IR/Builders.h"

#include "base/json_text.h"
#include "ir/model/module_facts.h"

namespace mtplan::ir {

namespace {

const std::vector<JsonMember> &membersOf(Fields &root, const char *key) {
  static const std::vector<JsonMember> kNone;
  const JsonValue *value = root.value(key, /*required=*/true);
  return value && root.findings.expectObject(*value, root.at(key))
             ? value->members
             : kNone;
}

const std::vector<std::string> kRoles = {"batch", "sequence", "vocab", "expert",
                                         "feature"};
const std::vector<std::string> kInits = {"normal", "residual", "ones", "zeros"};

bool isOneOf(const std::string &word, const std::vector<std::string> &words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

} // namespace

NativeNames::NativeNames(mlir::MLIRContext &context, Fields &root,
                         const ShapeOverrides &overrides)
    : findings(root.findings),
      element(elementTypeOf(context, overrides.elementType)),
      integers(mlir::Builder(&context).getI32Type()),
      singles(mlir::Builder(&context).getF32Type()) {
  readDimensions(root, overrides);
  for (const char *key : {"inputs", "parameters"})
    for (const auto &[name, value] : membersOf(root, key)) {
      std::string pointer = base::childPointer(root.at(key), name);
      if (const Declaration *other = find(name)) {
        findings.error(pointer, "the name is taken by " + other->pointer);
        continue;
      }
      Declaration declared;
      declared.name = name;
      declared.pointer = pointer;
      declared.parameter = std::string_view(key) == "parameters";
      declared.element = element;
      if (name.empty())
        findings.error(pointer, "the name is empty");
      declared.valid = findings.expectObject(value, pointer);
      if (declared.valid) {
        Fields fields(value, pointer, findings);
        if (auto named = readDims(fields, "dims"))
          declared.dims = std::move(*named);
        else
          declared.valid = false;
        if (declared.parameter)
          readParameter(fields, declared, overrides);
        else
          readInput(fields, declared);
        fields.rejectUnread();
      }
      declarations.push_back(std::move(declared));
      byName[name] = &declarations.back();
    }
}

void NativeNames::readDimensions(Fields &root,
                                 const ShapeOverrides &overrides) {
  std::vector<std::string> batches, sequences;
  for (const auto &[name, value] : membersOf(root, "dimensions")) {
    std::string pointer = base::childPointer(root.at("dimensions"), name);
    NamedDim &dim = dims[name];
    dim.name = name;
    if (!findings.expectObject(value, pointer))
      continue;
    Fields fields(value, pointer, findings);
    std::string role = fields.text("role", "feature");
    if (!isOneOf(role, kRoles))
      fields.error("role", unknownName("role", role, kRoles));
    if (role == "batch") {
      // A model describes one sample; the planner chooses the batch size.
      dim.role = DimRole::batch;
      globalBatch = fields.sizeIfAny("size");
      batches.push_back(name);
    } else {
      dim.size = fields.size("size").value_or(1);
    }
    if (role == "sequence") {
      dim.role = DimRole::sequence;
      dim.size = overrides.sequence.value_or(dim.size);
      sequence = dim.size;
      sequences.push_back(name);
    }
    if (role == "expert")
      dim.role = DimRole::expert;
    dim.used = dim.size;
    if (role == "vocab") {
      dim.role = DimRole::vocabulary;
      if (auto used = fields.sizeIfAny("used")) {
        dim.used = *used;
        if (*used > dim.size)
          fields.error("used", std::to_string(*used) + " is more than size " +
                                   std::to_string(dim.size));
      }
    }
    fields.rejectUnread();
  }
  if (batches.size() != 1)
    root.error("dimensions", "needs exactly 1 dimension with role batch, has " +
                                 std::to_string(batches.size()));
  if (sequences.size() > 1)
    root.error("dimensions", "needs at most 1 dimension with role sequence, "
                             "has " +
                                 listOf(sequences));
  if (overrides.sequence && sequences.empty())
    root.error("dimensions", "a sequence of " +
                                 std::to_string(*overrides.sequence) +
                                 " was asked for, but no dimension has role "
                                 "sequence");
}

void NativeNames::readInput(Fields &fields, Declaration &declared) {
  std::string type = fields.name("type");
  if (type == "i32")
    declared.element = integers;
  else if (type == "f32")
    declared.element = singles;
  else if (!type.empty() && type != "float")
    fields.error("type", unknownName("type", type, {"i32", "f32", "float"}));
  declared.limit = fields.sizeIfAny("below");
  if (type == "i32" && !declared.limit)
    fields.error("below", "is missing: integers are drawn below it");
  if (type != "i32" && declared.limit)
    fields.error("below", "is for integers only, but the type is " + type);
}

void NativeNames::readParameter(Fields &fields, Declaration &declared,
                                const ShapeOverrides &overrides) {
  declared.init = fields.text("init", "normal");
  if (!isOneOf(declared.init, kInits))
    fields.error("init", unknownName("initialisation", declared.init, kInits));
  for (const NamedDim *dim : declared.dims) {
    if (dim->role == DimRole::batch)
      fields.error("dims", "a parameter cannot have the batch dimension \"" +
                               dim->name + '"');
    if (dim->role == DimRole::sequence && overrides.sequence)
      fields.error("dims", "the sequence cannot be changed to " +
                               std::to_string(*overrides.sequence) +
                               " while a parameter has the dimension \"" +
                               dim->name +
                               "\"; name another dimension of its size");
  }
}

const NamedDim *NativeNames::findDim(std::string_view name) const {
  auto found = dims.find(name);
  return found == dims.end() ? nullptr : &found->second;
}

const Declaration *NativeNames::find(std::string_view name) const {
  auto found = byName.find(name);
  return found == byName.end() ? nullptr : found->second;
}

std::vector<std::string> NativeNames::allNames() const {
  std::vector<std::string> names;
  for (const Declaration &declared : declarations)
    names.push_back(declared.name);
  return names;
}

std::vector<std::string> NativeNames::dimNames() const {
  std::vector<std::string> known;
  for (const auto &[name, ignored] : dims)
    known.push_back(name);
  return known;
}

void NativeNames::rejectUnused() const {
  for (const Declaration &declared : declarations)
    if (!declared.isUsed)
      findings.error(declared.pointer, "is not read by any operator");
}

std::optional<NamedDims> NativeNames::readDims(Fields &fields,
                                               std::string_view key) {
  const std::size_t before = findings.errors.size();
  NamedDims found;
  std::vector<std::string> known = dimNames();
  std::vector<std::string> names = fields.texts(key, /*required=*/true);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NamedDim *dim = findDim(names[i]);
    if (!dim)
      findings.error(fields.at(key) + '/' + std::to_string(i),
                     unknownName("dimension", names[i], known));
    found.push_back(dim);
  }
  if (findings.errors.size() != before)
    return std::nullopt;
  return found;
}

} // namespace mtplan::ir
