//===- compute_op.h - What an operator answers ------------------*- C++ -*-===//
//
// The answers of the interface ComputeOp: how an operator may be sharded, what
// its time depends on, and its gradient.
//
// An operator is described once, by its factors: the index names of an einsum.
// A strategy assigns mesh axes to factors. Everything else follows from the
// rule (layouts of operands and results, where a partial sum arises):
//
//   a result that lacks a sharded factor is partial over the axis;
//   an operand that lacks it is replicated;
//   an addend is partial whenever the result is.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_COMPUTE_OP_H
#define MTPLAN_IR_COMPUTE_OP_H

#include <cstdint>
#include <string>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace mtplan::ir {

/// Names what software is known to take for an operator. Each operator's
/// definition says its class (`costClass` in compute_ops.td). Products and
/// attention have prices of their own, by their factors.
enum class CostClass : std::uint8_t {
  traffic, ///< reads its operands and writes its results
  layerNorm,
  rmsNorm,
  residual,   ///< adds two tensors
  activation, ///< applies a function to one tensor
  gated,      ///< multiplies one tensor by a function of another
  rope,
  dropout,
  biasGradient,   ///< sums a gradient over all tokens
  logitsRead,     ///< one of two passes over the logits in the forward half
  logitsGradient, ///< reads the logits and writes their gradient
};

/// The name of a factor's split. `data` leaves it to the dimension: samples are
/// batch, positions are sequence, all others are features.
enum class FactorRole : std::uint8_t { data, row, column, head, vocab, expert };

struct Factor {
  std::string name;
  /// Of this operator's types: global, or local once sharded.
  std::int64_t size = 1;
  FactorRole role = FactorRole::data;
  bool divisible = true;
  bool max = false;  ///< results that lack it are maxima and not sums
  double skew = 0.0; ///< see planner::Factor::skew
};

/// The factors of one dimension, major first; their sizes multiply to its size.
/// Only the first of several can be sharded. Empty means that the dimension has
/// no factor and is never sharded.
using DimFactors = llvm::SmallVector<int, 2>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

struct FactorRule {
  using Tensors = llvm::SmallVector<TensorFactors, 6>;
  /// Sets of operands in which the operator is jointly linear.
  using LinearGroups = llvm::SmallVector<llvm::SmallVector<int, 2>, 2>;

  llvm::SmallVector<Factor, 6> factors;
  Tensors operands, results;
  llvm::SmallVector<int, 2> addends; ///< operand numbers
  /// Operands of which only as many elements are read as the first result has:
  /// lookup tables.
  llvm::SmallVector<int, 1> lookedUp;
  LinearGroups linearGroups;

  /// Adds a factor and returns its index.
  int add(llvm::StringRef name, std::int64_t size,
          FactorRole role = FactorRole::data) {
    factors.push_back({name.str(), size, role});
    return static_cast<int>(factors.size()) - 1;
  }
  /// Returns the index of the factor called `name`, or -1.
  int find(llvm::StringRef name) const {
    for (std::size_t i = 0; i < factors.size(); ++i)
      if (factors[i].name == name)
        return static_cast<int>(i);
    return -1;
  }
  /// Sets the factors of all operands and results, and returns the rule.
  FactorRule &connect(Tensors operandFactors, Tensors resultFactors,
                      LinearGroups groups = {}) {
    operands = std::move(operandFactors);
    results = std::move(resultFactors);
    linearGroups = std::move(groups);
    return *this;
  }
};

/// Shows reverse-mode differentiation to an operator, which reads the gradients
/// of its results and adds gradients of its operands. A value with several
/// users gets the sum of their gradients, added in the order in which they are
/// made.
class GradientBuilder {
public:
  explicit GradientBuilder(mlir::OpBuilder &opBuilder) : builder(opBuilder) {}

  /// Inserts new operators.
  mlir::OpBuilder &builder;

  /// Returns the gradient of `value` so far; null if nothing it feeds has one.
  mlir::Value gradientOf(mlir::Value value) const {
    return gradients.lookup(value);
  }

  /// Returns whether the gradient of `value` is needed: it is a floating-point
  /// tensor and not an `mtp.input`.
  static bool wants(mlir::Value value);

  /// Adds a term to the gradient of `value`. If there is one already, an
  /// `mtp.add` called `label` + ".sum" adds them (".sum2" for the second of one
  /// label). Does nothing unless wants(value).
  void add(mlir::Value value, mlir::Value gradient, llvm::StringRef label);

  /// Sets a known gradient (a block argument).
  void seed(mlir::Value value, mlir::Value gradient) {
    gradients[value] = gradient;
  }

private:
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  llvm::StringMap<unsigned> sums; ///< number of sums per label
};

/// Returns the sizes of a ranked tensor.
inline llvm::ArrayRef<std::int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// Counts the bytes of all tensor operands and results, each value once.
std::int64_t bytesOfUses(mlir::Operation *op);

} // namespace mtplan::ir

#endif // MTPLAN_IR_COMPUTE_OP_H
