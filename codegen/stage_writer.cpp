//===- stage_writer.cpp - One stage's part of an executable plan ----------===//

#include "codegen/stage_writer.h"

#include <algorithm>

#include "llvm/ADT/MapVector.h"

#include "ir/decisions.h"
#include "runtime/plan/plan_queries.h"

using namespace mlir;

namespace mtplan::codegen {

using runtime::Parameter, runtime::Tensor;

namespace {

ArrayRef<int64_t> copiesOf(Operation *op) {
  return op->getAttrOfType<DenseI64ArrayAttr>(ir::kCopiesAttrName);
}

// Returns whether an instruction extracts a shard of a weight or copies a
// gradient to the host, and thus prepares an update.
bool preparesUpdate(const runtime::Stage &stage,
                    const runtime::Instruction &instruction) {
  const auto *call = std::get_if<runtime::KernelCall>(&instruction.what);
  return (call && call->kernel == "piece") ||
         runtime::sideOf(stage, instruction) == runtime::Side::down;
}

} // namespace

LogicalResult StageWriter::writeBlock(Block &block, Direction &program) {
  for (Operation &op : block)
    if (failed(instructions.write(&op, ir::isAhead(&op) ? program.ahead
                                                        : program.own)))
      return failure();
  return success();
}

void StageWriter::addPrograms(const std::vector<ir::SegmentOp> &segments) {
  struct Both {
    SegmentRuns forward, backward;
  };
  std::vector<Both> all(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ir::SegmentOp segment = segments[i];
    const std::string name = segment.getSymName().str();
    const Directions &both = directions[name];
    const auto first = static_cast<int>(segment.getFirst());
    const auto count = static_cast<int>(segment.getRepeat());
    all[i].forward = {name, ".forward", first, count, &both.forward};
    all[i].backward = {name, ".backward", first, count, &both.backward};
    const bool follows =
        i > 0 && segment.getChunk().value_or(0) ==
                     ir::SegmentOp(segments[i - 1]).getChunk().value_or(0);
    all[i].forward.isFirst = !follows;
    all[i].backward.isFirst = true;
    if (!follows)
      continue;
    all[i - 1].forward.next = &all[i].forward;
    all[i - 1].backward.isFirst = false;
    all[i].backward.next = &all[i - 1].backward;
  }
  for (const Both &both : all)
    for (const SegmentRuns *runs : {&both.forward, &both.backward})
      for (ScheduledProgram &one : programsOf(*runs)) {
        auto &[forward, backward] = scheduled[runs->name];
        one.entry.program = static_cast<int>(stage.programs.size());
        (runs->ascends() ? forward : backward).push_back(one.entry);
        stage.programs.push_back(std::move(one.program));
      }
}

void StageWriter::addSchedule(ArrayRef<int64_t> tasks,
                              const std::vector<ir::SegmentOp> &segments) {
  for (; tasks.size() >= 3; tasks = tasks.drop_front(3)) {
    auto visit = [&](ir::SegmentOp segment) {
      if (static_cast<int64_t>(segment.getChunk().value_or(0)) != tasks[1])
        return;
      const auto &[forward, backward] = scheduled[segment.getSymName().str()];
      for (runtime::ScheduleEntry entry : tasks[0] == 0 ? forward : backward) {
        entry.microBatch = static_cast<int>(tasks[2]);
        stage.schedule.push_back(entry);
      }
    };
    if (tasks[0] == 0)
      llvm::for_each(segments, visit);
    else
      llvm::for_each(llvm::reverse(segments), visit);
  }
}

// Returns `tensor` for the first layer that a runtime::Parameter covers, which
// is `first` layers after the first layer of the segment.
Tensor StageWriter::fromCopy(Tensor tensor, int64_t first) const {
  const runtime::Buffer &buffer =
      stage.buffers[static_cast<std::size_t>(tensor.buffer)];
  tensor.entry = (tensor.entry + static_cast<int>(first) * tensor.entryStep) %
                 buffer.entries;
  return tensor;
}

LogicalResult StageWriter::addParameter(ir::AdamwOp op) {
  auto state = op->getAttrOfType<ArrayAttr>(ir::kStateAttrName);
  std::string label = op.getLabel().str();
  int64_t first = copiesOf(op)[0];
  ir::ParameterOp read = instructions.readOf(op);
  if (!read)
    return op->emitOpError("updates a parameter that its stage does not read");
  Split stored = tensors.splitBy(read.getLayout().value_or(ir::LayoutAttr()));
  Split owned = op.getLayout() ? tensors.splitBy(*op.getLayout()) : stored;
  auto tensor = [&](std::size_t i, Type type, const char *end, Split split) {
    return fromCopy(tensors.tensorAt(llvm::cast<ir::PlaceAttr>(state[i]), type,
                                     label + end, std::move(split)),
                    first);
  };
  Type piece = op.getGradient().getType();
  Parameter parameter;
  parameter.label = label;
  parameter.init = read.getInit().str();
  if (op.getLabel().contains('*'))
    parameter.firstCopy = static_cast<int>(
        read->getParentOfType<ir::SegmentOp>().getFirst() + first);
  if (std::optional<ArrayRef<int64_t>> unpadded = read.getUnpadded())
    parameter.unpadded.assign(unpadded->begin(), unpadded->end());
  parameter.copies = static_cast<int>(copiesOf(op)[1]);
  parameter.value = tensor(0, read.getType(), "", stored);
  parameter.firstMoment = tensor(1, piece, ".exp_avg", owned);
  parameter.secondMoment = tensor(2, piece, ".exp_avg_sq", owned);
  if (state.size() > 3)
    parameter.master = tensor(3, piece, ".master", owned);
  FailureOr<ir::PlaceAttr> gradient = placeOf(op.getGradient());
  if (failed(gradient))
    return failure();
  parameter.gradient = fromCopy(
      tensors.tensorAt(*gradient, piece, label + ".grad", owned), first);
  const std::vector<runtime::Axis> &mesh = names.plan.mesh;
  for (std::size_t axis = 0; axis < mesh.size(); ++axis) {
    auto one = static_cast<int>(axis);
    bool splits = llvm::any_of(
        owned, [&](const auto &axes) { return llvm::is_contained(axes, one); });
    if (!splits && mesh[axis].size > 1 && mesh[axis].name != ir::kStageAxis)
      parameter.alike.push_back(one);
  }
  for (auto update : names.module.getOps<ir::UpdateOp>()) {
    if (static_cast<int64_t>(update.getStage().value_or(0)) >= number)
      break;
    if (!op.getLabel().contains('*'))
      for (auto other : update.getBody().front().getOps<ir::AdamwOp>())
        parameter.countedElsewhere |= other.getLabel() == op.getLabel();
  }
  stage.parameters.push_back(std::move(parameter));
  return success();
}

// Returns the programs of the update: if `applies`, the programs that process
// weights, otherwise the programs that process gradients. Reductions that
// overlap with backward are instead appended to the backward program of their
// segment.
FailureOr<std::vector<StageWriter::UpdatePart>>
StageWriter::partsOf(ir::UpdateOp update, bool applies) {
  struct Halves {
    std::vector<Written> first, then;
    ArrayRef<int64_t> copies;
  };
  llvm::MapVector<Attribute, Halves> programsOfUpdate;
  for (Operation &op : update.getBody().front()) {
    if (ir::isUpdated(&op) != applies)
      continue;
    ArrayRef<int64_t> copies = copiesOf(&op);
    Attribute program = op.getAttr(ir::kUpdateProgramAttrName);
    if (copies.size() != 2 || !program)
      return op.emitOpError("has no '") << ir::kCopiesAttrName << "' or '"
                                        << ir::kUpdateProgramAttrName << "'";
    std::vector<Written> written;
    if (failed(instructions.write(&op, written)))
      return failure();
    if (auto beside = op.getAttrOfType<StringAttr>(ir::kOverlappedAttrName)) {
      auto found = directions.find(beside.str());
      if (found == directions.end())
        return op.emitOpError("overlaps the backward of ")
               << beside << ", which is no segment of its stage";
      llvm::move(written, std::back_inserter(found->second.backward.own));
      continue;
    }
    if (written.empty())
      continue;
    Halves &halves = programsOfUpdate[program];
    halves.copies = copies;
    for (Written &one : written)
      (preparesUpdate(stage, one.instruction) ? halves.first : halves.then)
          .push_back(std::move(one));
  }
  std::vector<UpdatePart> parts;
  for (auto &[key, halves] : programsOfUpdate) {
    llvm::move(halves.then, std::back_inserter(halves.first));
    parts.push_back({std::move(halves.first),
                     static_cast<int>(halves.copies[0]),
                     static_cast<int>(halves.copies[1])});
  }
  return parts;
}

void StageWriter::addUpdate(std::vector<UpdatePart> parts, bool applies) {
  std::vector<runtime::ScheduleEntry> &entries =
      applies ? stage.apply : stage.reduce;
  for (UpdatePart &part : parts) {
    const std::string name = std::string("update.") +
                             (applies ? "apply." : "reduce.") +
                             std::to_string(entries.size());
    // Backward completes the gradients of the last layer first.
    const bool turns = !applies && part.copies > 1;
    entries.push_back(
        {static_cast<int>(stage.programs.size()), 0,
         turns ? part.firstCopy + part.copies - 1 : part.firstCopy,
         turns ? -1 : 1, part.copies});
    stage.programs.push_back(programOf(name, std::move(part.instructions),
                                       applies ? part.copies : 1));
  }
}

FailureOr<runtime::Stage>
StageWriter::write(ArrayRef<int64_t> tasks,
                   const std::vector<ir::SegmentOp> &segments,
                   ir::UpdateOp update) {
  int stages = names.mesh.axis(ir::kStageAxis);
  for (int64_t rank = 0; rank < names.mesh.ranks(); ++rank)
    if (stages < 0 || names.mesh.coordinate(rank, stages) == number)
      stage.ranks.push_back(static_cast<int>(rank));
  for (ir::SegmentOp segment : segments) {
    segment.walk([&](ir::ParameterOp read) {
      reads[read.getLabel().str()].push_back(read);
    });
    Directions &both = directions[segment.getSymName().str()];
    ir::BackwardOp backward = segment.getBackward();
    if (failed(writeBlock(segment.getBlock(), both.forward)) ||
        (backward && failed(writeBlock(backward.getBlock(), both.backward))))
      return failure();
  }
  FailureOr<std::vector<UpdatePart>> reduces = std::vector<UpdatePart>(),
                                     applies = std::vector<UpdatePart>();
  if (update) {
    reduces = partsOf(update, false);
    if (failed(reduces))
      return failure();
    applies = partsOf(update, true);
    if (failed(applies))
      return failure();
  }
  addPrograms(segments);
  addSchedule(tasks, segments);
  addUpdate(std::move(*reduces), false);
  addUpdate(std::move(*applies), true);
  if (update)
    for (auto op : update.getBody().front().getOps<ir::AdamwOp>())
      if (failed(addParameter(op)))
        return failure();
  return std::move(stage);
}

} // namespace mtplan::codegen
