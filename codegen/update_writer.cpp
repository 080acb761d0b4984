//===- update_writer.cpp - A step's update, before and after the norm -----===//

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "llvm/ADT/MapVector.h"

#include "codegen/stage_writer.h"
#include "ir/update_chain.h"
#include "runtime/plan/instruction_side.h"

using namespace mlir;

namespace mtplan::codegen {

using runtime::Instruction, runtime::KernelCall, runtime::Parameter,
    runtime::Program, runtime::ScheduleEntry, runtime::Tensor;

namespace {

ArrayRef<int64_t> copiesOf(Operation *op) {
  return op->getAttrOfType<DenseI64ArrayAttr>(ir::kCopiesAttrName);
}

/// Orders the instructions of a program for their streams. Copies to the host
/// come first, so that the host starts early. Without a host, all updates are
/// in a row, and what follows from them comes behind in the reverse order: the
/// first waits for all updates and the others wait for nothing, so that updates
/// and collectives can each be one launch. Reductions before the norm are
/// alike: each hop over a further axis comes behind the hop before, in reverse
/// order every second time. If other stages take part in reductions, the order
/// is kept, because those stages order theirs.
class Ordered {
public:
  Ordered(const runtime::Stage &theStage, bool othersHavePart)
      : stage(theStage), keepsOrder(othersHavePart) {}

  /// Adds the instructions that an operation has become.
  void add(Operation *op, std::vector<Instruction> instructions) {
    ir::AdamwOp adamw = ir::updatedBy(op);
    for (Instruction &one : instructions) {
      const runtime::Side side = runtime::sideOf(stage, one);
      hostHasPart |= side != runtime::Side::device;
      if (side == runtime::Side::down)
        first.push_back(std::move(one));
      else if (!adamw)
        hops[keepsOrder ? 0 : hopOf(op)].push_back(std::move(one));
      else if (hostHasPart)
        then.push_back(std::move(one));
      else if (adamw != op)
        behind[adamw].push_back(std::move(one));
      else
        (isPiece(one) ? first : then).push_back(std::move(one));
    }
  }

  std::vector<Instruction> take() {
    std::vector<Instruction> all = std::exchange(first, {});
    for (auto &[hop, some] : std::exchange(hops, {})) {
      if (hop > 0 && hop % 2 == 0)
        std::ranges::reverse(some);
      llvm::move(some, std::back_inserter(all));
    }
    llvm::move(std::exchange(then, {}), std::back_inserter(all));
    for (auto &[adamw, steps] : llvm::reverse(behind))
      llvm::move(steps, std::back_inserter(all));
    behind.clear();
    hostHasPart = false;
    return all;
  }

private:
  /// Returns the number of steps from a gradient's sum to `op`, 0 for the
  /// operation that makes the sum.
  static int hopOf(Operation *op) {
    Operation *before =
        op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
    return before ? 1 + hopOf(before) : 0;
  }

  static bool isPiece(const Instruction &one) {
    const auto *call = std::get_if<KernelCall>(&one.what);
    return call && call->kernel == "piece";
  }

  const runtime::Stage &stage;
  const bool keepsOrder;
  std::vector<Instruction> first, then;
  /// The instructions before the norm.
  std::map<int, std::vector<Instruction>> hops;
  llvm::MapVector<Operation *, std::vector<Instruction>> behind; ///< by update
  bool hostHasPart = false;
};

} // namespace

// Returns a read of the parameter that `op` updates, which has the place that
// the state names.
ir::ParameterOp StageWriter::readOf(ir::AdamwOp op) {
  auto state = op->getAttrOfType<ArrayAttr>(ir::kStateAttrName);
  for (ir::ParameterOp read : reads[op.getLabel().str()]) {
    FailureOr<ir::PlaceAttr> place = placeOf(read.getValue());
    if (succeeded(place) && state && *place == state[0])
      return read;
  }
  return {};
}

LogicalResult StageWriter::writeAdamw(ir::AdamwOp op, Program &program) {
  auto state = op->getAttrOfType<ArrayAttr>(ir::kStateAttrName);
  if (!state || state.size() < 3)
    return op->emitOpError("has no state");
  std::string label = op.getLabel().str();
  auto placed = [&](std::size_t i) {
    return llvm::cast<ir::PlaceAttr>(state[i]);
  };
  Type type = op.getGradient().getType();
  ir::ParameterOp read = readOf(op);
  if (!read)
    return op->emitOpError("updates a parameter that its stage does not read");
  Split stored = splitBy(read.getLayout().value_or(ir::LayoutAttr()));
  Split owned = op.getLayout() ? splitBy(*op.getLayout()) : stored;
  Instruction update;
  update.label = label;
  update.what = KernelCall{"adamw", settingsOf(op)};
  if (failed(addTensors(op.getGradient(), {owned}, label, update.inputs)))
    return failure();
  Tensor value;
  if (op.getUpdated()) {
    FailureOr<ir::PlaceAttr> piece = placeOf(op.getUpdated());
    if (failed(piece))
      return failure();
    value = tensorAt(*piece, type, label, owned);
    if (state.size() == 3) { // the weight's own piece serves as the master
      Instruction take;
      take.label = label;
      take.what = KernelCall{"piece", {}};
      take.inputs = {tensorAt(placed(0), read.getType(), label, stored)};
      take.outputs = {value};
      program.instructions.push_back(std::move(take));
    }
  } else {
    value = tensorAt(placed(0), type, label, owned);
  }
  Tensor first = tensorAt(placed(1), type, label + ".exp_avg", owned);
  Tensor second = tensorAt(placed(2), type, label + ".exp_avg_sq", owned);
  Tensor master = value;
  if (state.size() > 3)
    master = tensorAt(placed(3), type, label + ".master", owned);
  if (state.size() == 3 || !runtime::isOnHost(stage, master)) {
    update.outputs = {value, master, first, second};
    program.instructions.push_back(std::move(update));
    return success();
  }
  // The host works on a gradient that is copied to it and on its own weights,
  // which are copied back.
  auto copy = [&](const Tensor &from, const Tensor &to, StringRef stream) {
    program.instructions.push_back({label,
                                    KernelCall{"copy", {}},
                                    {from},
                                    {to},
                                    names.streamOf(stream),
                                    {}});
  };
  Tensor arrived = tensorAt(placed(4), type, label + ".grad.host", owned);
  Tensor updated = master;
  if (state.size() > 5)
    updated = tensorAt(placed(5), type, label + ".host", owned);
  copy(update.inputs[0], arrived, "down");
  update.inputs = {arrived};
  update.outputs = {updated, master, first, second};
  update.stream = names.streamOf("host");
  program.instructions.push_back(std::move(update));
  copy(updated, value, "up");
  return success();
}

// The entries of a parameter count from the first copy that is meant, not from
// the segment's first.
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
  ir::ParameterOp read = readOf(op);
  if (!read)
    return op->emitOpError("updates a parameter that its stage does not read");
  Split stored = splitBy(read.getLayout().value_or(ir::LayoutAttr()));
  Split owned = op.getLayout() ? splitBy(*op.getLayout()) : stored;
  auto tensor = [&](std::size_t i, Type type, const char *end, Split split) {
    return fromCopy(tensorAt(llvm::cast<ir::PlaceAttr>(state[i]), type,
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
  parameter.gradient =
      fromCopy(tensorAt(*gradient, piece, label + ".grad", owned), first);
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

LogicalResult StageWriter::writeUpdate(ir::UpdateOp update) {
  if (!update)
    return success();
  const bool othersHavePart = llvm::any_of(
      update.getBody().front().getOps<ir::AllReduceOp>(),
      [](ir::AllReduceOp op) { return op.getAxis() == ir::kStageAxis; });
  for (bool applies : {false, true}) {
    std::vector<ScheduleEntry> &entries = applies ? stage.apply : stage.reduce;
    Attribute open; // the program that is open
    Ordered ordered(stage, othersHavePart);
    auto close = [&] {
      if (open)
        stage.programs.back().instructions = ordered.take();
    };
    for (Operation &op : update.getBody().front()) {
      if (ir::isUpdated(&op) != applies)
        continue;
      ArrayRef<int64_t> here = copiesOf(&op);
      // A reduction needs no workspace, so that its programs differ by their
      // copies alone.
      Attribute program = op.getAttr(applies ? ir::kUpdateProgramAttrName
                                             : ir::kCopiesAttrName);
      if (here.size() != 2 || !program)
        return op.emitOpError("has no '") << ir::kCopiesAttrName << "' or '"
                                          << ir::kUpdateProgramAttrName << "'";
      Program written;
      if (failed(write(&op, written)))
        return failure();
      if (written.instructions.empty())
        continue;
      if (program != open) {
        close();
        open = program;
        Program begun;
        begun.name = std::string("update.") + (applies ? "apply." : "reduce.") +
                     std::to_string(entries.size());
        // A kept piece may lie where the gradient of the next copy was, so that
        // the last copy comes first.
        const auto first = static_cast<int>(here[0]),
                   count = static_cast<int>(here[1]);
        const bool turns = !applies && count > 1;
        entries.push_back({static_cast<int>(stage.programs.size()), 0,
                           turns ? first + count - 1 : first, turns ? -1 : 1,
                           count});
        stage.programs.push_back(std::move(begun));
      }
      ordered.add(&op, std::move(written.instructions));
    }
    close();
  }
  for (auto op : update.getBody().front().getOps<ir::AdamwOp>())
    if (failed(addParameter(op)))
      return failure();
  return success();
}

} // namespace mtplan::codegen
