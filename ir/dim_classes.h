//===- dim_classes.h - Equivalence classes of dimensions --------*- C++ -*-===//
//
// Two dimensions are equivalent if a factor of some operator runs along both,
// if they are the same dimension of a value on the two sides of a segment
// boundary, if they are the same dimension of a parameter that is read in two
// places, or if they are head dimensions of equal width. The inputs declare
// which dimensions count samples and positions. The classes extend these
// declarations to all other tensors.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_DIM_CLASSES_H
#define MTPLAN_IR_DIM_CLASSES_H

#include <cstdint>
#include <vector>

#include "ir/mtp.h"

namespace mtplan::ir {

struct DimClass {
  std::int64_t size = 0;
  bool batch = false;    ///< counts samples
  bool sequence = false; ///< counts positions
  bool whole = false;    ///< a norm or softmax reduces over the dimension
  bool experts = false;  ///< counts experts
  bool places = false;   ///< counts the tokens of an expert's capacity
  /// Says whether the class can be sharded: the class contains a divisible
  /// factor that is the first factor of a dimension, or it contains a dimension
  /// of a parameter.
  bool splittable = false;
  /// Lists factor classes, major first, whose sizes multiply to this class's
  /// size. The list is empty if the dimension has a single factor.
  std::vector<int> product;
};

class DimClasses {
public:
  explicit DimClasses(mlir::ModuleOp module);

  const std::vector<DimClass> &all() const { return classes; }
  const DimClass &of(mlir::Value value, unsigned dim) const;
  int indexOf(mlir::Value value, unsigned dim) const;
  /// Returns the class of factor `factor` of a compute operator.
  int indexOf(mlir::Operation *op, int factor) const;

private:
  int node(mlir::Value value, unsigned dim);
  int find(int node) const;
  void unite(int a, int b);
  void uniteValues(mlir::Value a, mlir::Value b);
  void visit(mlir::ModuleOp module);
  void visitCompute(ComputeOp op);
  void visitBoundaries(mlir::ModuleOp module);
  void uniteProducts();
  void number();

  std::vector<int> parents;
  std::vector<DimClass> facts;                 // per node, merged by number()
  llvm::DenseMap<mlir::Value, int> valueNodes; // node of dimension 0
  llvm::DenseMap<mlir::Operation *, int> factorNodes; // node of factor 0
  llvm::StringMap<mlir::Value> labelled; // parameters and accumulators
  llvm::DenseMap<std::int64_t, int> headDims;
  std::vector<std::pair<int, std::vector<int>>> products;
  std::vector<int> numbers; // node -> class
  std::vector<DimClass> classes;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_DIM_CLASSES_H
