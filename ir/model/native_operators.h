//===- native_operators.h - Operators by name -------------------*- C++ -*-===//
//
// A table says what each forward operator takes, by patterns over named
// dimensions. A pattern is a row of words: a letter stands for one dimension,
// `...` for any number, the same ones wherever it recurs; `#` in front means
// integers.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_NATIVE_OPERATORS_H
#define MTPLAN_IR_MODEL_NATIVE_OPERATORS_H

#include <map>
#include <string>
#include <vector>

#include "ir/model/builder.h"
#include "ir/model/native_names.h"

namespace mtplan::ir {

/// A value with the names of its dimensions; null after an error.
struct NamedValue {
  mlir::Value value;
  std::vector<const NamedDim *> dims;
  bool parameter = false;
};

enum class AttributeKind : std::uint8_t {
  real,       ///< in [low, high)
  count,      ///< a size
  flag,       ///< true or false
  mask,       ///< a name, the operator's own by default
  classes,    ///< a size, by default the used part of the first operand's last
  activation, ///< a nonlinearity
  keep,       ///< how many trailing dimensions the result has
  dimension   ///< a dimension's name; the result has it by the attribute's
};

struct AttributeRule {
  const char *name;
  AttributeKind kind;
  bool required = false;
  double low = 0.0, high = 1.0;
  double fallback = 0.0;
};

struct OperandRule {
  const char *name, *pattern;
};

struct OperatorRule {
  const char *name;
  std::vector<OperandRule> operands;
  const char *result;       ///< a pattern over what the operands bound
  bool singles = false;     ///< the result is f32, else as the operand below
  unsigned typeOperand = 0; ///< whose element type the result has
  std::vector<AttributeRule> attributes = {};
  bool integers = false; ///< the result is i32
};

const std::vector<OperatorRule> &operatorRules();

/// An operator of the file, its operands found.
struct NativeOperator {
  std::string name, label, pointer;
  std::vector<NamedValue> operands;
  std::vector<std::string> operandNames;
  const NativeNames *declared = nullptr;
};

/// Checks operands and attributes and makes the operator. A null value after an
/// error.
NamedValue makeOperator(ModelBuilder &builder, const OperatorRule &rule,
                        const NativeOperator &op, Fields &attributes);

/// The same for einsum, whose pattern is `equation`.
NamedValue makeEinsum(ModelBuilder &builder, const NativeOperator &op,
                      const std::string &equation, Findings &findings);

/// "[batch, seq, hidden]".
std::string dimNames(const std::vector<const NamedDim *> &dims);

/// The tensor type of named dimensions.
mlir::RankedTensorType typeOf(const std::vector<const NamedDim *> &dims,
                              mlir::Type element);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_NATIVE_OPERATORS_H
