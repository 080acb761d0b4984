//===- compute_op.h - Factors, cost classes and gradients -------*- C++ -*-===//
//
// Defines the types that the interface ComputeOp uses: FactorRule states how an
// operator may be sharded, CostClass how it is priced, and GradientBuilder
// builds gradients.
//
// An operator is described once, by its factors, which correspond to the index
// names of an einsum. A strategy assigns mesh axes to factors. The layouts of
// operands and results, partial sums included, follow from three rules:
//
//   a result that lacks a sharded factor is partial over the axis;
//   an operand that lacks a sharded factor is replicated over the axis;
//   an addend is partial whenever the result is partial.
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

/// Selects the numbers of a software file that price a memory-bound operator.
/// Each operator's definition names its class (`costClass` in compute_ops.td).
/// Matrix products and attention have pricing rules of their own instead.
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

/// States the role of a factor. A plan names the split of a factor after its
/// role ("row", "vocab"). The split of a `data` factor is instead named after
/// the kind of the dimension (ir/dim_classes.h): batch, sequence, expert,
/// hidden (the model dimension) or feature.
enum class FactorRole : std::uint8_t { data, row, column, head, vocab, expert };

struct Factor {
  std::string name;
  /// Holds the size in this operator's types, which is global before
  /// partitioning and local to a rank afterwards.
  std::int64_t size = 1;
  FactorRole role = FactorRole::data;
  bool divisible = true;
  bool max = false;  ///< results that lack the factor are maxima, not sums
  double skew = 0.0; ///< see planner::Factor::skew
};

/// Lists the factors of one dimension, major first. The product of their sizes
/// is the size of the dimension. Only the first factor can be sharded. A
/// dimension with an empty list has no factor and is never sharded.
using DimFactors = llvm::SmallVector<int, 2>;
using TensorFactors = llvm::SmallVector<DimFactors, 4>;

struct FactorRule {
  using Tensors = llvm::SmallVector<TensorFactors, 6>;
  /// Lists the sets of operands in which the operator is jointly linear.
  using LinearGroups = llvm::SmallVector<llvm::SmallVector<int, 2>, 2>;

  llvm::SmallVector<Factor, 6> factors;
  Tensors operands, results;
  llvm::SmallVector<int, 2> addends; ///< operands added to a product: the bias
  /// Lists the operands that are lookup tables. The operator reads only as many
  /// elements of a table as its first result has.
  llvm::SmallVector<int, 1> lookedUp;
  LinearGroups linearGroups;

  int add(llvm::StringRef name, std::int64_t size,
          FactorRole role = FactorRole::data) {
    factors.push_back({name.str(), size, role});
    return static_cast<int>(factors.size()) - 1;
  }
  /// Returns the index in `factors` of the factor called `name`, or -1 if none.
  int find(llvm::StringRef name) const {
    for (std::size_t i = 0; i < factors.size(); ++i)
      if (factors[i].name == name)
        return static_cast<int>(i);
    return -1;
  }
  FactorRule &connect(Tensors operandFactors, Tensors resultFactors,
                      LinearGroups groups = {}) {
    operands = std::move(operandFactors);
    results = std::move(resultFactors);
    linearGroups = std::move(groups);
    return *this;
  }
};

/// Holds the state of reverse-mode differentiation. An operator reads the
/// gradients of its results and adds gradients of its operands. The gradients
/// of a value with several users are summed in the order in which they are
/// added.
class GradientBuilder {
public:
  explicit GradientBuilder(mlir::OpBuilder &opBuilder) : builder(opBuilder) {}

  mlir::OpBuilder &builder;

  mlir::Value gradientOf(mlir::Value value) const {
    return gradients.lookup(value);
  }

  /// Returns whether `value` needs a gradient: it is a floating-point tensor
  /// and not an `mtp.input`.
  static bool wants(mlir::Value value);

  /// Adds a term to the gradient of `value`. If `value` has a gradient already,
  /// an `mtp.add` called `label` + ".sum" adds both (".sum2" for the second sum
  /// of the same label). Does nothing if wants(value) is false.
  void add(mlir::Value value, mlir::Value gradient, llvm::StringRef label);

  void seed(mlir::Value value, mlir::Value gradient) {
    gradients[value] = gradient;
  }

private:
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
  llvm::StringMap<unsigned> sums; ///< number of sums per label
};

inline llvm::ArrayRef<std::int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

std::int64_t bytesOfUses(mlir::Operation *op);

} // namespace mtplan::ir

#endif // MTPLAN_IR_COMPUTE_OP_H
