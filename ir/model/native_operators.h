//===- native_operators.h - Creates operators by name -----------*- C++ -*-===//
//
// A table describes the operands of each forward operator by patterns over
// named dimensions. A pattern is a list of words. A letter matches one
// dimension, and `...` matches any number of dimensions. If a word occurs
// again, it matches the same dimensions. A leading `#` requires integers.
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

/// Holds a value with its named dimensions. `value` is null after an error.
struct NamedValue {
  mlir::Value value;
  NamedDims dims;
  bool parameter = false;
};

enum class AttributeKind : std::uint8_t {
  real,  ///< a number in [low, high)
  count, ///< a size
  flag,  ///< true or false
  mask,  ///< a mask's name, by default the operator's label
  /// Is a size, by default that of the first operand's last dimension without
  /// padding.
  classes,
  activation, ///< an activation function
  keep,       ///< the number of trailing dimensions of the result
  /// Is a dimension's name. In the result's pattern, the attribute's name is a
  /// word that stands for this dimension.
  dimension
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

/// States the element type of a result: the type of an operand, or a fixed
/// type.
enum class ResultElement : std::uint8_t { ofFirst, ofSecond, f32, i32 };

struct OperatorRule {
  const char *name;
  std::vector<OperandRule> operands;
  const char *result; ///< pattern of words that the operands bind
  std::vector<AttributeRule> attributes = {};
  ResultElement element = ResultElement::ofFirst;
};

/// Returns the rules of all forward operators except einsum.
const std::vector<OperatorRule> &operatorRules();

struct NativeOperator {
  std::string name, label, pointer;
  std::vector<NamedValue> operands;
  std::vector<std::string> operandNames;
  const NativeNames *declared = nullptr;
};

/// Checks operands and attributes, creates the operator and returns its result,
/// or a null value after an error.
NamedValue makeOperator(ModelBuilder &builder, const OperatorRule &rule,
                        const NativeOperator &op, Fields &attributes);

/// Checks the operands, creates an einsum with `equation` and returns its
/// result, or a null value after an error.
NamedValue makeEinsum(ModelBuilder &builder, const NativeOperator &op,
                      const std::string &equation, Findings &findings);

std::string dimNames(const NamedDims &dims);

mlir::RankedTensorType typeOf(const NamedDims &dims, mlir::Type element);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_NATIVE_OPERATORS_H
