//===- kernel_call.cpp - An operator as a reference kernel's call ---------===//

#include "ir/interpret/kernel_call.h"

namespace mtplan::ir {

using runtime::reference::Attributes;

namespace {

/// Returns the attributes that are numbers, flags or words. Kernels need no
/// layouts or strategies.
Attributes attributesOf(mlir::Operation *op) {
  Attributes attributes;
  for (mlir::NamedAttribute named : op->getAttrDictionary()) {
    const std::string name = named.getName().str();
    const mlir::Attribute value = named.getValue();
    if (auto text = llvm::dyn_cast<mlir::StringAttr>(value))
      attributes.set(name, text.str());
    else if (auto flag = llvm::dyn_cast<mlir::BoolAttr>(value))
      attributes.set(name, std::int64_t{flag.getValue()});
    else if (auto number = llvm::dyn_cast<mlir::FloatAttr>(value))
      attributes.set(name, number.getValueAsDouble());
    else if (auto kind = llvm::dyn_cast<ActivationAttr>(value);
             kind && name == "kind") // any 32-bit integer is such an attribute
      attributes.set(name, stringifyEnum(kind.getValue()).str());
    else if (auto integer = llvm::dyn_cast<mlir::IntegerAttr>(value))
      attributes.set(name, integer.getInt());
    else if (llvm::isa<mlir::UnitAttr>(value))
      attributes.set(name, std::int64_t{1});
  }
  return attributes;
}

} // namespace

runtime::reference::Kernel kernelOf(mlir::Operation *op) {
  const auto &kernels = runtime::reference::kernels();
  const auto found = kernels.find(op->getName().stripDialect().str());
  return llvm::isa<ComputeOp>(op) && found != kernels.end() ? found->second
                                                            : nullptr;
}

KernelCall callOf(mlir::Operation *op,
                  llvm::ArrayRef<const HostTensor *> operands) {
  KernelCall call;
  call.attributes = attributesOf(op);
  for (const HostTensor *operand : operands) {
    call.inShapes.push_back({operand->shape, {}});
    call.in.emplace_back(operand->data);
  }
  for (mlir::Type type : op->getResultTypes()) {
    std::vector<std::int64_t> shape =
        llvm::cast<mlir::RankedTensorType>(type).getShape().vec();
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

} // namespace mtplan::ir
