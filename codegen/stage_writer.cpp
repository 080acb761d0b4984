//===- stage_writer.cpp - One stage's part of an executable plan ----------===//

#include "codegen/stage_writer.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "ir/decisions.h"
#include "runtime/plan/buffer_end.h"

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

PlanNames::PlanNames(ModuleOp theModule, runtime::Plan &thePlan)
    : module(theModule),
      mesh(module->getAttrOfType<ir::MeshAttr>(ir::kMeshAttrName)),
      plan(thePlan) {}

int PlanNames::groupOver(StringRef axis, ArrayRef<int64_t> among) {
  std::string name = axis.str();
  for (int64_t place : among)
    name += " " + std::to_string(place);
  auto [found, isNew] =
      groups.try_emplace(name, static_cast<int>(plan.groups.size()));
  if (!isNew)
    return found->second;
  runtime::Group group{name, {}};
  int along = mesh.axis(axis);
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    if (mesh.coordinate(rank, along) != 0)
      continue;
    std::vector<int> members;
    for (int64_t member : mesh.group(rank, along))
      if (among.empty() ||
          llvm::is_contained(among, mesh.coordinate(member, along)))
        members.push_back(static_cast<int>(member));
    group.communicators.push_back(std::move(members));
  }
  plan.groups.push_back(std::move(group));
  return found->second;
}

int PlanNames::channelOf(StringRef label) {
  return channels.try_emplace(label.str(), static_cast<int>(channels.size()))
      .first->second;
}

int PlanNames::streamOf(StringRef name) {
  const auto *found = llvm::find(ir::kStreams, std::string_view(name));
  return static_cast<int>(std::distance(ir::kStreams.begin(), found));
}

void PlanNames::writeStreams() {
  std::array<bool, ir::kStreams.size()> isUsed{true}; // "compute" always is
  const auto forEach = [&](auto act) {
    for (runtime::Stage &stage : plan.stages)
      for (runtime::Program &program : stage.programs)
        for (runtime::Instruction &instruction : program.instructions)
          act(instruction.stream);
  };
  forEach([&](int stream) { isUsed[static_cast<std::size_t>(stream)] = true; });
  std::array<int, ir::kStreams.size()> numbers{};
  for (std::size_t stream = 0; stream < numbers.size(); ++stream) {
    numbers[stream] = static_cast<int>(plan.streams.size());
    if (isUsed[stream])
      plan.streams.emplace_back(ir::kStreams[stream]);
  }
  forEach(
      [&](int &stream) { stream = numbers[static_cast<std::size_t>(stream)]; });
}

int StageWriter::arenaOf(StringRef name) {
  auto [found, isNew] =
      arenas.try_emplace(name.str(), static_cast<int>(stage.arenas.size()));
  if (isNew)
    stage.arenas.push_back({classOf(name), 0});
  return found->second;
}

int StageWriter::bufferOf(ir::PlaceAttr place, const std::string &name) {
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

Tensor StageWriter::tensorAt(ir::PlaceAttr place, Type type,
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

FailureOr<ir::PlaceAttr> StageWriter::placeOf(Value value) {
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

LogicalResult StageWriter::addTensors(ValueRange values,
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

StageWriter::Split StageWriter::splitBy(ir::LayoutAttr layout) const {
  Split split;
  if (!layout)
    return split;
  for (ArrayAttr dim : layout.getDims()) {
    std::vector<int> &axes = split.emplace_back();
    for (auto axis : dim.getAsRange<StringAttr>())
      axes.push_back(names.mesh.axis(axis.getValue()));
  }
  return split;
}

LogicalResult StageWriter::run(ArrayRef<int64_t> tasks,
                               const std::vector<ir::SegmentOp> &segments,
                               ir::UpdateOp update) {
  int stages = names.mesh.axis(ir::kStageAxis);
  for (int64_t rank = 0; rank < names.mesh.ranks(); ++rank)
    if (stages < 0 || names.mesh.coordinate(rank, stages) == number)
      stage.ranks.push_back(static_cast<int>(rank));
  std::map<Operation *, std::pair<int, int>> programs; // forward and backward
  for (ir::SegmentOp segment : segments) {
    segment.walk([&](ir::ParameterOp read) {
      reads[read.getLabel().str()].push_back(read);
    });
    std::string name = segment.getSymName().str();
    auto first = static_cast<int64_t>(segment.getFirst());
    FailureOr<int> forward =
        addProgram(name + ".forward", segment.getBlock(), first);
    FailureOr<int> backward = -1;
    if (ir::BackwardOp half = segment.getBackward())
      backward = addProgram(name + ".backward", half.getBlock(), first);
    if (failed(forward) || failed(backward))
      return failure();
    programs[segment] = {*forward, *backward};
  }
  for (; tasks.size() >= 3; tasks = tasks.drop_front(3)) {
    auto visit = [&](ir::SegmentOp segment) {
      if (static_cast<int64_t>(segment.getChunk().value_or(0)) != tasks[1])
        return;
      auto count = static_cast<int>(segment.getRepeat());
      auto [forward, backward] = programs[segment];
      auto microBatch = static_cast<int>(tasks[2]);
      if (tasks[0] == 0 && forward >= 0)
        stage.schedule.push_back({forward, microBatch, 0, 1, count});
      if (tasks[0] != 0 && backward >= 0)
        stage.schedule.push_back({backward, microBatch, count - 1, -1, count});
    };
    if (tasks[0] == 0)
      llvm::for_each(segments, visit);
    else
      llvm::for_each(llvm::reverse(segments), visit);
  }
  return writeUpdate(update);
}

} // namespace mtplan::codegen
