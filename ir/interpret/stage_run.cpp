//===- stage_run.cpp - One stage's ranks, in lock step --------------------===//

#include "ir/interpret/stage_run.h"

namespace mtplan::ir {

StageRun::StageRun(SharedRun &sharedRun, std::int64_t stageNumber,
                   StageProgram stageProgram)
    : state(sharedRun.options, sharedRun.mesh, sharedRun.partitioned),
      shared(sharedRun), stage(stageNumber), program(std::move(stageProgram)) {
  for (SegmentOp segment : program.segments) {
    const auto first = static_cast<std::int64_t>(segment.getFirst());
    const auto repeat = static_cast<std::int64_t>(segment.getRepeat());
    const auto chunk = shared.stages > 1
                           ? static_cast<std::int64_t>(*segment.getChunk())
                           : std::int64_t{0};
    for (std::int64_t i = 0; i < repeat; ++i)
      chunks[chunk].push_back({segment, first + i});
  }
  moment.seed = shared.options.seed;
  moment.step = shared.options.step;
  if (program.tasks.empty())
    startUpdate();
}

mlir::FailureOr<bool> StageRun::run() {
  bool moved = false;
  while (!isDone()) {
    waiting = nullptr;
    if (mlir::failed(task < program.tasks.size() ? advanceTask()
                                                 : advanceUpdate()))
      return mlir::failure();
    if (waiting)
      return moved;
    moved = true;
  }
  waiting = nullptr;
  return moved;
}

std::string StageRun::waitText() const {
  if (!waiting)
    return "stage " + std::to_string(stage) + " has ended";
  std::string text = "stage " + std::to_string(stage) + " waits for ";
  if (auto receive = llvm::dyn_cast<ReceiveOp>(waiting))
    return text + "\"" + receive.getLabel().str() + "\" of micro-batch " +
           std::to_string(moment.microBatch) + " from stage " +
           std::to_string(receive.getFrom());
  auto sum = llvm::cast<AllReduceOp>(waiting);
  const char *separator = "stage ";
  for (std::int64_t member : shared.mail.missingAt(sum, stage)) {
    text += separator + std::to_string(member);
    separator = " and ";
  }
  return text + " to sum \"" + sum.getCause().str() + "\"";
}

//===----------------------------------------------------------------------===//
// Tasks run the copies of a chunk's segments, one after the other
//===----------------------------------------------------------------------===//

const StageRun::Visit &StageRun::current() {
  std::vector<Visit> &all = visits();
  return phase == Phase::forward ? all[visit] : all[all.size() - 1 - visit];
}

mlir::LogicalResult StageRun::bind(mlir::Operation *owner, mlir::Block &block,
                                   Frame &frame) {
  if (block.getNumArguments() != carried.size())
    return owner->emitOpError("takes ")
           << block.getNumArguments() << " values, but its neighbour hands on "
           << carried.size();
  for (auto [argument, value] : llvm::zip_equal(block.getArguments(), carried))
    if (mlir::failed(define(argument, value, frame)))
      return mlir::failure();
  return mlir::success();
}

// Binds the values that the neighbour passes on, before a block's first
// operator.
mlir::LogicalResult StageRun::enter() {
  const StageTask &now = program.tasks[task];
  phase = now.phase;
  moment.microBatch = now.microBatch;
  const Visit &here = current();
  moment.copy = here.copy;
  SegmentOp segment = here.segment;
  if (phase == Phase::forward) {
    Frame &frame = frames[{now.microBatch, &here}];
    op = &segment.getBlock().front();
    return bind(segment, segment.getBlock(), frame);
  }
  BackwardOp backward = segment.getBackward();
  if (!backward)
    return segment.emitOpError(
        "has no backward half, unlike others of its module");
  auto frame = frames.find({now.microBatch, &here});
  if (frame == frames.end())
    return backward.emitOpError("runs for micro-batch ")
           << now.microBatch << " before its forward half has";
  op = &backward.getBlock().front();
  return bind(backward, backward.getBlock(), frame->second);
}

void StageRun::leave(YieldOp yield) {
  auto frame = frames.find({moment.microBatch, &current()});
  carried.clear();
  for (mlir::Value value : yield.getValues())
    carried.push_back(frame->second.at(value));
  if (phase == Phase::backward || !shared.differentiated)
    frames.erase(frame);
  op = nullptr;
  if (++visit == visits().size())
    nextTask();
}

void StageRun::nextTask() {
  carried.clear();
  visit = 0;
  if (++task == program.tasks.size())
    startUpdate();
}

void StageRun::startUpdate() {
  if (!program.update)
    return;
  mlir::Block &block = program.update.getBody().front();
  phase = Phase::update;
  moment.microBatch = 0;
  op = block.empty() ? nullptr : &block.front();
}

mlir::LogicalResult StageRun::advanceTask() {
  if (!op)
    return enter();
  if (auto yield = llvm::dyn_cast<YieldOp>(op)) {
    leave(yield);
    return mlir::success();
  }
  if (!llvm::isa<BackwardOp>(op) &&
      mlir::failed(execute(op, frames[{moment.microBatch, &current()}])))
    return mlir::failure();
  if (!waiting)
    op = op->getNextNode();
  return mlir::success();
}

//===----------------------------------------------------------------------===//
// The update runs its operators once for each copy of their parameter
//===----------------------------------------------------------------------===//

// Leaves `copies` empty for an operator that belongs to no copy.
mlir::LogicalResult StageRun::findCopies() {
  copies.emplace();
  if (auto sum = llvm::dyn_cast<AccumulatedOp>(op);
      sum && sum.getLabel().contains('*')) {
    *copies = state.accumulatedCopies(sum.getLabel());
    if (auto range = sum.getCopies())
      llvm::erase_if(*copies, [&](std::int64_t copy) {
        return copy < (*range)[0] || copy >= (*range)[0] + (*range)[1];
      });
    if (copies->empty())
      return sum.emitOpError("reads what nothing was added to");
    return mlir::success();
  }
  for (auto &[copy, frame] : byCopy)
    if (llvm::any_of(op->getOperands(), [&values = frame](auto operand) {
          return values.contains(operand);
        }))
      copies->push_back(copy);
  return mlir::success();
}

mlir::LogicalResult StageRun::executeInUpdate(std::int64_t copy) {
  Frame &frame = byCopy[copy];
  for (mlir::Value operand : op->getOperands()) {
    if (frame.contains(operand))
      continue;
    auto found = common.find(operand);
    if (found == common.end())
      return op->emitOpError("joins values of different copies");
    frame[operand] = found->second;
  }
  moment.copy = copy;
  return execute(op, frame);
}

mlir::LogicalResult StageRun::advanceUpdate() {
  if (!copies && mlir::failed(findCopies()))
    return mlir::failure();
  if (copies->empty()) {
    moment.copy = 0;
    if (mlir::failed(execute(op, common)))
      return mlir::failure();
  }
  while (!copies->empty() && !waiting) {
    if (mlir::failed(executeInUpdate(copies->front())))
      return mlir::failure();
    if (!waiting)
      copies->erase(copies->begin());
  }
  if (waiting)
    return mlir::success();
  copies.reset();
  op = op->getNextNode();
  return mlir::success();
}

} // namespace mtplan::ir
