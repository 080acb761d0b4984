//===- placement.cpp - Where a rank stands in an operator -----------------===//

#include "ir/interpret/placement.h"

#include "llvm/ADT/STLExtras.h"

namespace mtplan::ir {
namespace {

using AxesOfFactor = std::vector<llvm::SmallVector<int, 2>>;

std::vector<llvm::SmallVector<int, 2>> axesOfDims(const TensorFactors &dims,
                                                  const AxesOfFactor &axes) {
  std::vector<llvm::SmallVector<int, 2>> result;
  for (const DimFactors &factors : dims)
    // Only the major factor of a dimension can be split.
    result.push_back(factors.empty() ? llvm::SmallVector<int, 2>{}
                                     : axes[factors.front()]);
  return result;
}

// Leaves tensors whole if `axes` is empty.
void placeTensors(std::vector<runtime::reference::LocalShape> &tensors,
                  const Placement::TensorAxes &axes, const MeshView &mesh,
                  std::int64_t rank) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    tensors[i].pieces.clear();
    for (std::size_t d = 0; d < axes[i].size(); ++d)
      tensors[i].pieces.push_back(
          mesh.pieceOf(axes[i][d], rank, tensors[i].sizes[d]));
  }
}

template <typename Range>
bool ranksMatch(const llvm::SmallVectorImpl<TensorFactors> &tensors,
                Range &&types) {
  return tensors.size() == static_cast<std::size_t>(llvm::size(types)) &&
         llvm::all_of(llvm::zip_equal(tensors, types), [](auto pair) {
           auto [dims, type] = pair;
           return static_cast<std::int64_t>(dims.size()) ==
                  llvm::cast<mlir::RankedTensorType>(type).getRank();
         });
}

} // namespace

mlir::FailureOr<Placement> Placement::of(ComputeOp op, const MeshView &mesh) {
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttrName);
  if (!strategy)
    return op->emitOpError("of a partitioned module has no '")
           << kStrategyAttrName << "'";
  const FactorRule rule = op.getFactorRule();
  if (!ranksMatch(rule.operands, op->getOperandTypes()) ||
      !ranksMatch(rule.results, op->getResultTypes()))
    return op->emitOpError("has a factor rule that does not fit its tensors");

  AxesOfFactor axes(rule.factors.size());
  for (auto [axis, factor] :
       llvm::zip_equal(strategy.getAxes(), strategy.getFactors())) {
    const int number = mesh.axis(axis.getValue());
    if (number < 0)
      return op->emitOpError("has a strategy for axis ")
             << axis << ", which the mesh has not";
    // "+N" lets a partial value through, so that it splits no dimension.
    if (factor.getValue().starts_with("+"))
      continue;
    const int index = rule.find(factor.getValue());
    if (index < 0)
      return op->emitOpError("has a strategy for factor ")
             << factor << ", which it has not";
    axes[index].push_back(number);
  }

  Placement placement;
  for (const TensorFactors &dims : rule.operands)
    placement.operands.push_back(axesOfDims(dims, axes));
  for (const TensorFactors &dims : rule.results)
    placement.results.push_back(axesOfDims(dims, axes));
  return placement;
}

void Placement::place(KernelCall &call, const MeshView &mesh,
                      std::int64_t rank) const {
  placeTensors(call.inShapes, operands, mesh, rank);
  placeTensors(call.outShapes, results, mesh, rank);
}

} // namespace mtplan::ir
