//===- stage_run.cpp - One stage's ranks, in lock step --------------------===//

#include "ir/interpret/stage_run.h"

#include <numeric>

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace mtplan::ir {

void StageMessages::send(Phase phase, std::int64_t from, Message message) {
  const auto to = static_cast<std::int64_t>(message.op.getTo());
  channels[{phase, from, to}].push_back(std::move(message));
}

FailureOr<std::optional<Message>>
StageMessages::receive(Phase phase, ReceiveOp op, std::int64_t to,
                       std::int64_t microBatch) {
  const auto from = static_cast<std::int64_t>(op.getFrom());
  std::deque<Message> &channel = channels[{phase, from, to}];
  if (channel.empty())
    return std::optional<Message>();
  Message oldest = channel.front();
  if (oldest.op.getLabel() != op.getLabel() ||
      oldest.microBatch != microBatch) {
    InFlightDiagnostic diagnostic = op.emitOpError("expects ")
                                    << op.getLabelAttr() << " of micro-batch "
                                    << microBatch << " from stage " << from;
    diagnostic.attachNote(oldest.op.getLoc())
        << "but " << oldest.op.getLabelAttr() << " of micro-batch "
        << oldest.microBatch << " comes first";
    return diagnostic;
  }
  channel.pop_front();
  return std::optional<Message>(std::move(oldest));
}

LogicalResult StageMessages::expectEmpty() const {
  for (const auto &[channel, messages] : channels)
    if (!messages.empty()) {
      const Message &lost = messages.front();
      SendOp op = lost.op;
      return op.emitOpError("sends ")
             << op.getLabelAttr() << " of micro-batch " << lost.microBatch
             << " to stage " << op.getTo() << ", which never receives it";
    }
  return success();
}

std::vector<std::int64_t> StageMessages::groupOf(AllReduceOp op) const {
  if (auto among = op.getAmong())
    return among->vec();
  std::vector<std::int64_t> all(static_cast<std::size_t>(stages));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

FailureOr<std::optional<std::vector<HostTensor>>>
StageMessages::contribute(AllReduceOp op, std::int64_t stage,
                          const RankValues &value) {
  const Group group = groupOf(op);
  if (!llvm::is_contained(group, stage))
    return op.emitOpError("runs on stage ")
           << stage << ", which is not among the stages that it sums over";
  std::vector<GroupSum> &all = sums[group];
  std::size_t &next = finished[{group, stage}];
  if (next == all.size())
    all.push_back({op, {}});
  GroupSum &current = all[next];
  AllReduceOp first = current.first;
  if (first.getCause() != op.getCause() || first.getMax() != op.getMax() ||
      first.getType() != op.getType()) {
    InFlightDiagnostic diagnostic =
        op.emitOpError("is the next all-reduce of stage ")
        << stage << ", for " << op.getCauseAttr()
        << ", but that of another stage in its group is for "
        << first.getCauseAttr();
    diagnostic.attachNote(first.getLoc()) << "that of the other stage is here";
    return diagnostic;
  }
  current.passed.try_emplace(stage, value);
  if (current.passed.size() < group.size())
    return std::optional<std::vector<HostTensor>>();
  ++next;
  std::vector<HostTensor> sum = *current.passed.begin()->second;
  for (const auto &[member, values] : llvm::drop_begin(current.passed))
    for (auto [total, term] : llvm::zip_equal(sum, *values))
      reduceInto(total, term, op.getMax());
  return std::optional<std::vector<HostTensor>>(std::move(sum));
}

std::vector<std::int64_t> StageMessages::missingAt(AllReduceOp op,
                                                   std::int64_t stage) const {
  std::vector<std::int64_t> missing;
  const Group group = groupOf(op);
  const auto all = sums.find(group);
  const auto next = finished.find({group, stage});
  if (all == sums.end() || next == finished.end() ||
      next->second >= all->second.size())
    return missing;
  for (std::int64_t member : group)
    if (!all->second[next->second].passed.count(member))
      missing.push_back(member);
  return missing;
}

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

FailureOr<bool> StageRun::run() {
  bool moved = false;
  while (!isDone()) {
    waiting = nullptr;
    if (failed(task < program.tasks.size() ? advanceTask() : advanceUpdate()))
      return failure();
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
  for (std::int64_t member : shared.messages.missingAt(sum, stage)) {
    text += separator + std::to_string(member);
    separator = " and ";
  }
  return text + " to sum \"" + sum.getCause().str() + "\"";
}

//===----------------------------------------------------------------------===//
// Tasks: the layers of a chunk run one after another
//===----------------------------------------------------------------------===//

const StageRun::Visit &StageRun::current() {
  std::vector<Visit> &all = visits();
  return phase == Phase::forward ? all[visit] : all[all.size() - 1 - visit];
}

LogicalResult StageRun::bind(Operation *owner, Block &block, Frame &frame) {
  if (block.getNumArguments() != carried.size())
    return owner->emitOpError("takes ")
           << block.getNumArguments() << " values, but its neighbour yields "
           << carried.size();
  for (auto [argument, value] : llvm::zip_equal(block.getArguments(), carried))
    if (failed(define(argument, value, frame)))
      return failure();
  return success();
}

LogicalResult StageRun::enter() {
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
  for (Value value : yield.getValues())
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
  Block &block = program.update.getBody().front();
  phase = Phase::update;
  moment.microBatch = 0;
  op = block.empty() ? nullptr : &block.front();
}

LogicalResult StageRun::advanceTask() {
  if (!op)
    return enter();
  if (auto yield = llvm::dyn_cast<YieldOp>(op)) {
    leave(yield);
    return success();
  }
  if (!llvm::isa<BackwardOp>(op) &&
      failed(execute(op, frames[{moment.microBatch, &current()}])))
    return failure();
  if (!waiting)
    op = op->getNextNode();
  return success();
}

//===----------------------------------------------------------------------===//
// The update: each operator runs once per layer of its parameter
//===----------------------------------------------------------------------===//

// Sets `copies` to the layers for which `op` runs. The list is empty, and `op`
// runs once, if `op` reads neither a value of a repeated layer nor an
// accumulator whose label has a `*`.
LogicalResult StageRun::findCopies() {
  copies.emplace();
  if (auto sum = llvm::dyn_cast<AccumulatedOp>(op);
      sum && sum.getLabel().contains('*')) {
    *copies = state.accumulatedCopies(sum.getLabel());
    if (auto range = sum.getCopies())
      llvm::erase_if(*copies, [&](std::int64_t copy) {
        return copy < (*range)[0] || copy >= (*range)[0] + (*range)[1];
      });
    if (copies->empty())
      return sum.emitOpError("reads an accumulator to which no operation adds");
    return success();
  }
  for (auto &[copy, frame] : byCopy)
    if (llvm::any_of(op->getOperands(), [&values = frame](auto operand) {
          return values.contains(operand);
        }))
      copies->push_back(copy);
  return success();
}

LogicalResult StageRun::executeInUpdate(std::int64_t copy) {
  Frame &frame = byCopy[copy];
  for (Value operand : op->getOperands()) {
    if (frame.contains(operand))
      continue;
    auto found = common.find(operand);
    if (found == common.end())
      return op->emitOpError("reads values of different layers");
    frame[operand] = found->second;
  }
  moment.copy = copy;
  return execute(op, frame);
}

LogicalResult StageRun::advanceUpdate() {
  if (!copies && failed(findCopies()))
    return failure();
  if (copies->empty()) {
    moment.copy = 0;
    if (failed(execute(op, common)))
      return failure();
  }
  while (!copies->empty() && !waiting) {
    if (failed(executeInUpdate(copies->front())))
      return failure();
    if (!waiting)
      copies->erase(copies->begin());
  }
  if (waiting)
    return success();
  copies.reset();
  op = op->getNextNode();
  return success();
}

LogicalResult StageRun::define(Value result, const FailureOr<RankValues> &value,
                               Frame &frame) {
  if (failed(value))
    return failure();
  auto type = llvm::cast<RankedTensorType>(result.getType());
  if (type.getShape() != llvm::ArrayRef((**value).front().shape))
    return emitError(result.getLoc(), "a value has another shape than ")
           << type;
  frame[result] = *value;
  return success();
}

RankValues StageRun::seen(Operation *ran, llvm::StringRef axis,
                          const std::vector<HostTensor> &passed,
                          std::vector<HostTensor> received) {
  if (shared.options.afterCollective)
    shared.options.afterCollective(ran, passed, received);
  ++shared
        .collectives[{phase, ran->getName().stripDialect().str(), axis.str()}];
  return share(std::move(received));
}

FailureOr<RankValues> StageRun::executeCollective(Operation *ran,
                                                  const RankValues &input) {
  if (!shared.partitioned)
    return ran->emitOpError("in a module without '")
           << kPartitionedAttrName << "'";
  auto results = runCollective(ran, *input, shared.mesh);
  if (failed(results))
    return failure();
  return seen(ran, axisOfCollective(ran).getValue(), *input,
              std::move(*results));
}

LogicalResult StageRun::send(SendOp ran, const RankValues &value) {
  if (shared.stages == 1)
    return ran.emitOpError("in a step that is not split over stages");
  shared.messages.send(phase, stage, {ran, moment.microBatch, value});
  ++shared.collectives[{phase, "send", kStageAxis.str()}];
  return success();
}

LogicalResult StageRun::receive(ReceiveOp ran, Frame &frame) {
  if (shared.stages == 1)
    return ran.emitOpError("in a step that is not split over stages");
  auto message = shared.messages.receive(phase, ran, stage, moment.microBatch);
  if (failed(message))
    return failure();
  if (!*message) {
    waiting = ran;
    return success();
  }
  const std::vector<HostTensor> &passed = *(*message)->values;
  return define(ran.getValue(), seen(ran, kStageAxis, passed, passed), frame);
}

LogicalResult StageRun::sumOverStages(AllReduceOp ran, Frame &frame) {
  const RankValues own = frame.at(ran.getInput());
  auto sum = shared.messages.contribute(ran, stage, own);
  if (failed(sum))
    return failure();
  if (!*sum) {
    waiting = ran;
    return success();
  }
  return define(ran.getResult(), seen(ran, kStageAxis, *own, std::move(**sum)),
                frame);
}

FailureOr<const Placement *> StageRun::placementOf(Operation *ran) {
  auto [entry, isNew] = placements.try_emplace(ran);
  if (isNew && shared.partitioned) {
    auto placement = Placement::of(llvm::cast<ComputeOp>(ran), shared.mesh);
    if (failed(placement))
      return failure();
    entry->second = std::move(*placement);
  }
  return &entry->second;
}

LogicalResult StageRun::executeKernel(Operation *ran, Frame &frame) {
  const runtime::reference::Kernel kernel = kernelOf(ran);
  if (!kernel)
    return ran->emitOpError("cannot be interpreted");
  auto placement = placementOf(ran);
  if (failed(placement))
    return failure();
  std::vector<std::vector<HostTensor>> results(ran->getNumResults());
  for (std::int64_t rank = 0; rank < shared.mesh.ranks(); ++rank) {
    llvm::SmallVector<const HostTensor *> operands;
    for (Value operand : ran->getOperands())
      operands.push_back(&(*frame.at(operand))[rank]);
    KernelCall call = callOf(ran, operands);
    call.moment = moment;
    (*placement)->place(call, shared.mesh, rank);
    kernel(call);
    for (auto [all, one] : llvm::zip_equal(results, takeResults(call)))
      all.push_back(std::move(one));
  }
  for (auto [result, values] : llvm::zip_equal(ran->getResults(), results))
    frame[result] = share(std::move(values));
  return success();
}

LogicalResult StageRun::execute(Operation *ran, Frame &frame) {
  const auto input = [&]() -> const RankValues & {
    return frame.at(ran->getOperand(0));
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(ran)
      .Case([&](ParameterOp parameter) {
        return define(parameter.getValue(),
                      state.readParameter(parameter, moment.copy), frame);
      })
      .Case([&](InputOp data) {
        return define(data.getValue(), state.readInput(data, moment.microBatch),
                      frame);
      })
      .Case([&](AccumulateOp sum) {
        return state.accumulate(sum, moment.copy, input());
      })
      .Case([&](AccumulatedOp sum) {
        return define(sum.getValue(), state.readAccumulated(sum, moment.copy),
                      frame);
      })
      .Case([&](AdamwOp adamw) -> LogicalResult {
        if (!adamw.getUpdated())
          return state.update(adamw, moment.copy, input());
        return define(adamw.getUpdated(),
                      state.updateOwned(adamw, moment.copy, input()), frame);
      })
      .Case([&](StoreOp store) {
        return state.store(store, moment.copy, input());
      })
      .Case([&](ResultOp result) {
        state.report(result, moment.copy, input());
        return success();
      })
      .Case([&](ReshardOp reshard) -> LogicalResult {
        if (shared.partitioned)
          return reshard.emitOpError("in a partitioned module");
        return define(reshard.getResult(), input(), frame);
      })
      .Case([&](SendOp out) { return send(out, input()); })
      .Case([&](ReceiveOp in) { return receive(in, frame); })
      .Default([&](Operation *other) {
        auto sum = llvm::dyn_cast<AllReduceOp>(other);
        if (sum && shared.stages > 1 && sum.getAxis() == kStageAxis)
          return sumOverStages(sum, frame);
        if (axisOfCollective(other))
          return define(other->getResult(0), executeCollective(other, input()),
                        frame);
        return executeKernel(other, frame);
      });
}

} // namespace mtplan::ir
