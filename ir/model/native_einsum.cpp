//===- native_einsum.cpp - Equations over named dimensions ----------------===//
//
// A file may use any letters. The letters of the dialect are fixed, because
// factor rules derive roles from them: b for samples, s for positions, v for
// vocabulary and e for experts. In a weight, i stands for the input features
// and o for the output features.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <cctype>

#include "ir/model/native_operators.h"

using namespace mlir;

namespace mtplan::ir {

namespace {

struct Equation {
  std::string lhs, rhs, result;

  std::string letters() const { return lhs + rhs + result; }
};

// Splits an equation such as "bsi,io->bso". Returns nothing if the text does
// not have this form.
std::optional<Equation> split(std::string text) {
  std::erase(text, ' ');
  std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == text.npos || arrow == text.npos || arrow < comma)
    return std::nullopt;
  Equation equation = {text.substr(0, comma),
                       text.substr(comma + 1, arrow - comma - 1),
                       text.substr(arrow + 2)};
  for (char c : equation.letters())
    if (!std::isalpha(static_cast<unsigned char>(c)))
      return std::nullopt;
  return equation;
}

bool has(const std::string &letters, char letter) {
  return letters.find(letter) != letters.npos;
}

using Letters = std::map<char, const NamedDim *>;

std::optional<Letters> readLetters(const NativeOperator &op,
                                   const Equation &equation,
                                   Findings &findings) {
  const std::size_t before = findings.errors.size();
  auto fail = [&](const std::string &what) {
    findings.error(op.pointer + "/equation", what);
  };
  Letters dims;
  for (std::size_t operand : {0, 1}) {
    const std::string &letters = operand == 0 ? equation.lhs : equation.rhs;
    const NamedDims &found = op.operands[operand].dims;
    const std::string &name = op.operandNames[operand];
    if (found.size() != letters.size()) {
      fail('"' + letters + "\" names " + std::to_string(letters.size()) +
           " dimensions, but \"" + name + "\" has " +
           std::to_string(found.size()) + ": " + dimNames(found));
      continue;
    }
    for (std::size_t i = 0; i < letters.size(); ++i) {
      auto [entry, isNew] = dims.emplace(letters[i], found[i]);
      if (!isNew && entry->second != found[i])
        fail(std::string("letter '") + letters[i] + "' is " +
             entry->second->name + " (" + std::to_string(entry->second->size) +
             ") in one operand and " + found[i]->name + " (" +
             std::to_string(found[i]->size) + ") in \"" + name + '"');
    }
  }
  for (const std::string *term :
       {&equation.lhs, &equation.rhs, &equation.result})
    for (std::size_t i = 0; i < term->size(); ++i) {
      char letter = (*term)[i];
      std::string subject = "letter '";
      (subject += letter) += "' occurs ";
      int terms = (has(equation.lhs, letter) ? 1 : 0) +
                  (has(equation.rhs, letter) ? 1 : 0) +
                  (has(equation.result, letter) ? 1 : 0);
      if (term->find(letter) != i)
        fail(subject + "twice in \"" + *term + '"');
      else if (terms < 2)
        fail(subject + "in 1 of the three terms, but at least 2 are needed");
    }
  if (op.operands.size() == 3 && findings.errors.size() == before) {
    const NamedDims &bias = op.operands[2].dims;
    NamedDims needed;
    if (!equation.result.empty())
      needed.push_back(dims[equation.result.back()]);
    if (bias != needed || needed.empty())
      findings.error(op.pointer + "/inputs/2",
                     "bias \"" + op.operandNames[2] + "\" has " +
                         dimNames(bias) + ", but needs the result's last, " +
                         dimNames(needed));
  }
  if (findings.errors.size() != before)
    return std::nullopt;
  return dims;
}

class Renaming {
public:
  Renaming(const Equation &parts, const Letters &dims, const NativeOperator &op)
      : equation(parts) {
    // Samples, positions, vocabulary and experts come first, because their
    // letters are fixed.
    for (char letter : equation.letters())
      switch (dims.at(letter)->role) {
      case DimRole::batch:
        claim(letter, 'b');
        break;
      case DimRole::sequence:
        claim(letter, 's');
        break;
      case DimRole::vocabulary:
        claim(letter, 'v');
        break;
      case DimRole::expert:
        claim(letter, 'e');
        break;
      case DimRole::feature:
        break;
      }
    if (op.operands[1].parameter)
      nameFeatures(equation.rhs, equation.lhs);
    else if (op.operands[0].parameter)
      nameFeatures(equation.lhs, equation.rhs);
    for (char letter : equation.letters())
      if (!names.count(letter))
        claim(letter, freeLetter(letter));
  }

  std::string text() const {
    return apply(equation.lhs) + ',' + apply(equation.rhs) + "->" +
           apply(equation.result);
  }

private:
  const Equation &equation;
  std::map<char, char> names;

  bool isTaken(char name) const {
    return std::any_of(names.begin(), names.end(),
                       [&](const auto &entry) { return entry.second == name; });
  }

  // The first letter of a role becomes `name`, the dialect's letter for that
  // role. Further letters of the role become free letters.
  void claim(char letter, char name) {
    if (!names.count(letter) && !isTaken(name))
      names[letter] = name;
  }

  void nameFeatures(const std::string &weight, const std::string &other) {
    for (char letter : weight) {
      if (names.count(letter) ||
          has(other, letter) == has(equation.result, letter))
        continue;
      claim(letter, has(other, letter) ? 'i' : 'o');
    }
  }

  // Returns `wanted` if it has no other meaning, otherwise the first free
  // letter.
  char freeLetter(char wanted) const {
    auto isFree = [&](char name) {
      return std::string_view("bsveio").find(name) == std::string_view::npos &&
             !isTaken(name);
    };
    if (isFree(wanted))
      return wanted;
    for (char name = 'a'; name <= 'z'; ++name)
      if (isFree(name))
        return name;
    char name = 'A';
    while (!isFree(name))
      ++name;
    return name;
  }

  std::string apply(const std::string &letters) const {
    std::string renamed;
    for (char letter : letters)
      renamed += names.at(letter);
    return renamed;
  }
};

} // namespace

NamedValue makeEinsum(ModelBuilder &builder, const NativeOperator &op,
                      const std::string &equation, Findings &findings) {
  const std::size_t before = findings.errors.size();
  std::optional<Equation> parsed = split(equation);
  if (!parsed)
    findings.error(op.pointer + "/equation",
                   "must have two operands and a result, as in "
                   "\"bsi,io->bso\", but is \"" +
                       equation + '"');
  if (op.operands.size() != 2 && op.operands.size() != 3)
    findings.error(op.pointer + "/inputs",
                   std::to_string(op.operands.size()) +
                       " given, but einsum takes 2, or 3 with a bias");
  if (findings.errors.size() != before)
    return {};
  std::optional<Letters> dims = readLetters(op, *parsed, findings);
  if (!dims)
    return {};

  NamedValue result;
  for (char letter : parsed->result)
    result.dims.push_back(dims->at(letter));
  auto element = llvm::cast<RankedTensorType>(op.operands[0].value.getType())
                     .getElementType();
  result.value = builder.ops.create<EinsumOp>(
      builder.location, typeOf(result.dims, element), op.label,
      Renaming(*parsed, *dims, op).text(), op.operands[0].value,
      op.operands[1].value,
      op.operands.size() == 3 ? op.operands[2].value : Value());
  return result;
}

} // namespace mtplan::ir
