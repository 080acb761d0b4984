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

std::vector<Span> spansOf(const HostTensor &tensor,
                          const std::vector<llvm::SmallVector<int, 2>> *axes,
                          const MeshView &mesh, std::int64_t rank) {
  std::vector<Span> spans;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    spans.push_back(axes ? mesh.pieceOf((*axes)[d], rank, tensor.shape[d])
                         : Span{0, tensor.shape[d]});
  return spans;
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
    // "+N" passes partial values through: no dimension is split by it.
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
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    call.operandSpans.push_back(
        spansOf(*call.operands[i], operands.empty() ? nullptr : &operands[i],
                mesh, rank));
  for (std::size_t i = 0; i < call.results.size(); ++i)
    call.resultSpans.push_back(spansOf(
        call.results[i], results.empty() ? nullptr : &results[i], mesh, rank));
}

} // namespace mtplan::ir
