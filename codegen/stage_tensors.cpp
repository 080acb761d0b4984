//===- stage_tensors.cpp - Buffers and tensors of a stage -----------------===//

#include "codegen/stage_tensors.h"

#include <algorithm>

#include "runtime/plan/plan_queries.h"

using namespace mlir;

namespace mtplan::codegen {

using runtime::Buffer, runtime::ElementType, runtime::MemoryClass,
    runtime::Tensor;

namespace {

MemoryClass classOf(StringRef arena) {
  return llvm::StringSwitch<MemoryClass>(arena)
      .Case("parameters", MemoryClass::parameters)
      .Case("optimizer", MemoryClass::optimizer)
      .Case("gradients", MemoryClass::gradients)
      .Case("activations", MemoryClass::activations)
      .Case("host", MemoryClass::host)
      .Default(MemoryClass::workspace);
}

ElementType elementOf(Type type) {
  return type.isF64()    ? ElementType::f64
         : type.isF32()  ? ElementType::f32
         : type.isF16()  ? ElementType::f16
         : type.isBF16() ? ElementType::bf16
                         : ElementType::i32;
}

} // namespace

int StageTensors::arenaOf(StringRef name) {
  auto [found, isNew] =
      arenas.try_emplace(name.str(), static_cast<int>(stage.arenas.size()));
  if (isNew)
    stage.arenas.push_back({classOf(name), 0});
  return found->second;
}

int StageTensors::bufferOf(ir::PlaceAttr place, const std::string &name) {
  int arena = arenaOf(place.getArena());
  auto [found, isNew] = buffers.try_emplace(
      {arena, place.getOffset(), place.getSize(), place.getEntries(),
       place.getEntryStride(), place.getSlots(), place.getSlotStride()},
      static_cast<int>(stage.buffers.size()));
  if (!isNew)
    return found->second;
  Buffer buffer;
  buffer.name = name;
  buffer.arena = arena;
  buffer.offset = place.getOffset();
  buffer.size = place.getSize();
  buffer.entries = static_cast<int>(place.getEntries());
  buffer.entryStride = place.getEntryStride();
  buffer.slots = static_cast<int>(place.getSlots());
  buffer.slotStride = place.getSlotStride();
  int64_t end = runtime::endOf(buffer);
  int64_t &size = stage.arenas[static_cast<std::size_t>(arena)].size;
  constexpr int64_t kAlign = runtime::kAlignment;
  size = std::max(size, (end + kAlign - 1) / kAlign * kAlign);
  stage.buffers.push_back(std::move(buffer));
  return found->second;
}

Tensor StageTensors::tensorAt(ir::PlaceAttr place, Type type,
                              const std::string &name, Split split) {
  Tensor tensor;
  tensor.buffer = bufferOf(place, name);
  tensor.entry = static_cast<int>(place.getEntry());
  tensor.entryStep = static_cast<int>(place.getStep());
  tensor.type = elementOf(place.getType());
  tensor.shape = llvm::cast<RankedTensorType>(type).getShape().vec();
  if (llvm::any_of(split, [](const auto &axes) { return !axes.empty(); }))
    tensor.split = std::move(split);
  return tensor;
}

FailureOr<ir::PlaceAttr> placeOf(Value value) {
  Operation *owner = value.getDefiningOp();
  std::size_t index = 0;
  if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
    owner = argument.getOwner()->getParentOp();
    index = argument.getArgNumber();
  } else {
    index = llvm::cast<OpResult>(value).getResultNumber();
  }
  auto places = owner->getAttrOfType<ArrayAttr>(ir::kPlacesAttrName);
  if (!places || index >= places.size())
    return owner->emitOpError("has no place for value ") << index;
  return llvm::cast<ir::PlaceAttr>(places[index]);
}

LogicalResult StageTensors::add(ValueRange values,
                                const std::vector<Split> &splits,
                                const std::string &name,
                                std::vector<Tensor> &tensors) {
  for (auto [i, value] : llvm::enumerate(values)) {
    FailureOr<ir::PlaceAttr> place = placeOf(value);
    if (failed(place))
      return failure();
    std::string bufferName = name;
    if (auto read = value.getDefiningOp<ir::ParameterOp>())
      bufferName = read.getLabel().str();
    tensors.push_back(tensorAt(*place, value.getType(), bufferName,
                               i < splits.size() ? splits[i] : Split()));
  }
  return success();
}

Split StageTensors::splitBy(ir::LayoutAttr layout) const {
  Split split;
  if (!layout)
    return split;
  for (ArrayAttr dim : layout.getDims()) {
    std::vector<int> &axes = split.emplace_back();
    for (auto axis : dim.getAsRange<StringAttr>())
      axes.push_back(mesh.axis(axis.getValue()));
  }
  return split;
}

} // namespace mtplan::codegen
