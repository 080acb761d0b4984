//===- dim_classes.h - Which dimensions are one and the same ----*- C++ -*-===//
//
// Two dimensions are one when a factor of some operator runs along both, when
// a value crosses a segment boundary, or when they belong to one parameter.
// What a dimension means (samples, positions) is declared at the inputs and
// known everywhere else from here.
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
  bool whole = false;    ///< some norm or softmax reads it whole
  bool experts = false;  ///< counts experts
  bool places = false;   ///< an expert's room for tokens
  /// Major or only factor of a dimension, divisible; or one of a parameter.
  bool splittable = false;
  /// Factor classes, major first, whose sizes multiply to this one's; empty
  /// for a class that is not made of others.
  std::vector<int> product;
};

/// Classes of a whole module, numbered in program order.
class DimClasses {
public:
  explicit DimClasses(mlir::ModuleOp module);

  const std::vector<DimClass> &all() const { return classes; }
  const DimClass &of(mlir::Value value, unsigned dim) const;
  int indexOf(mlir::Value value, unsigned dim) const;
  /// Class of factor `factor` of a compute op.
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
  std::vector<DimClass> facts;                 // per node, joined by number()
  llvm::DenseMap<mlir::Value, int> valueNodes; // of dimension 0
  llvm::DenseMap<mlir::Operation *, int> factorNodes; // of factor 0
  llvm::StringMap<mlir::Value> labelled; // parameters and accumulators
  llvm::DenseMap<std::int64_t, int> headDims;
  std::vector<std::pair<int, std::vector<int>>> products;
  std::vector<int> numbers; // node -> class
  std::vector<DimClass> classes;
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_DIM_CLASSES_H
