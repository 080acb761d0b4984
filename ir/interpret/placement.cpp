//===- placement.cpp - Kernel calls on the shards of a rank ---------------===//

#include "ir/interpret/placement.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace mtplan::ir {

std::vector<std::pair<std::string, runtime::reference::Attributes::Value>>
kernelAttributesOf(Operation *op) {
  std::vector<std::pair<std::string, runtime::reference::Attributes::Value>>
      attributes;
  for (NamedAttribute named : op->getAttrDictionary()) {
    const std::string name = named.getName().str();
    const Attribute value = named.getValue();
    if (auto text = llvm::dyn_cast<StringAttr>(value))
      attributes.emplace_back(name, text.str());
    else if (auto flag = llvm::dyn_cast<BoolAttr>(value))
      attributes.emplace_back(name, std::int64_t{flag.getValue()});
    else if (auto number = llvm::dyn_cast<FloatAttr>(value))
      attributes.emplace_back(name, number.getValueAsDouble());
    else if (auto kind = llvm::dyn_cast<ActivationAttr>(value);
             kind && name == "kind") // the cast accepts any 32-bit integer
      attributes.emplace_back(name, stringifyEnum(kind.getValue()).str());
    else if (auto integer = llvm::dyn_cast<IntegerAttr>(value))
      attributes.emplace_back(name, std::int64_t{integer.getInt()});
    else if (llvm::isa<UnitAttr>(value))
      attributes.emplace_back(name, std::int64_t{1});
  }
  return attributes;
}

runtime::reference::Kernel kernelOf(Operation *op) {
  const auto &kernels = runtime::reference::kernels();
  const auto found = kernels.find(op->getName().stripDialect().str());
  return llvm::isa<ComputeOp>(op) && found != kernels.end() ? found->second
                                                            : nullptr;
}

KernelCall callOf(Operation *op, llvm::ArrayRef<const HostTensor *> operands) {
  KernelCall call;
  for (auto &[name, value] : kernelAttributesOf(op))
    call.attributes.set(name, std::move(value));
  for (const HostTensor *operand : operands) {
    call.inShapes.push_back({operand->shape, {}});
    call.in.emplace_back(operand->data);
  }
  for (Type type : op->getResultTypes()) {
    std::vector<std::int64_t> shape =
        llvm::cast<RankedTensorType>(type).getShape().vec();
    call.out.emplace_back(HostTensor::countOf(shape), 0.0);
    call.outShapes.push_back({std::move(shape), {}});
  }
  return call;
}

std::vector<HostTensor> takeResults(KernelCall &call) {
  std::vector<HostTensor> results;
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    HostTensor &result = results.emplace_back();
    result.shape = call.outShapes[i].sizes;
    result.data = std::move(call.out[i]);
  }
  return results;
}

namespace {

using AxesOfFactor = std::vector<llvm::SmallVector<int, 2>>;

std::vector<llvm::SmallVector<int, 2>> axesOfDims(const TensorFactors &dims,
                                                  const AxesOfFactor &axes) {
  std::vector<llvm::SmallVector<int, 2>> result;
  for (const DimFactors &factors : dims)
    result.push_back(factors.empty() ? llvm::SmallVector<int, 2>{}
                                     : axes[factors.front()]);
  return result;
}

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
                  llvm::cast<RankedTensorType>(type).getRank();
         });
}

} // namespace

FailureOr<Placement> Placement::of(ComputeOp op, const MeshView &mesh) {
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
             << axis << ", which the mesh does not have";
    // "+N" passes a partial value through and shards no dimension.
    if (factor.getValue().starts_with("+"))
      continue;
    const int index = rule.find(factor.getValue());
    if (index < 0)
      return op->emitOpError("has a strategy for factor ")
             << factor << ", which the operator does not have";
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
