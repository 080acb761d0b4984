//===- stage_contents.cpp - Segments and tasks of a stage -----------------===//

#include "passes/schedule/stage_contents.h"

#include "mlir/IR/Builders.h"

#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

std::vector<StageContents> contentsOfStages(ModuleOp module) {
  std::vector<std::vector<ir::StageTask>> tasks = readTasks(module);
  const auto stages = static_cast<int64_t>(tasks.size());
  std::vector<StageContents> all(tasks.size());
  for (int64_t stage = 0; stage < stages; ++stage) {
    StageContents &contents = all[static_cast<std::size_t>(stage)];
    contents.tasks = std::move(tasks[static_cast<std::size_t>(stage)]);
    for (auto segment : module.getOps<ir::SegmentOp>())
      if (stageOf(segment, stages) == stage)
        contents.segments.push_back(segment);
    for (auto update : module.getOps<ir::UpdateOp>())
      if (static_cast<int64_t>(update.getStage().value_or(0)) == stage)
        contents.update = update;
  }
  return all;
}

bool isOfCopies(ir::SegmentOp segment) {
  return segment
      .walk([](ir::ParameterOp op) {
        return op.getLabel().contains('*') ? WalkResult::interrupt()
                                           : WalkResult::advance();
      })
      .wasInterrupted();
}

bool isInstruction(Operation *op) {
  return !llvm::isa<ir::ParameterOp, ir::BackwardOp, ir::YieldOp, ir::StoreOp,
                    ir::AccumulatedOp>(op);
}

Operation *originOf(Operation *op) {
  while (!op->hasAttr("label") && op->getNumOperands() > 0)
    op = op->getOperand(0).getDefiningOp();
  return op;
}

template <typename Op> static bool has(ir::SegmentOp segment, StringRef label) {
  return segment
      .walk([&](Op op) {
        return op.getLabel() == label ? WalkResult::interrupt()
                                      : WalkResult::advance();
      })
      .wasInterrupted();
}

FailureOr<UpdatedCopies> updatedCopies(const StageContents &stage,
                                       Operation *op) {
  Operation *origin = originOf(op);
  auto label = origin->getAttrOfType<StringAttr>("label");
  UpdatedCopies meant;
  if (!label.getValue().contains('*'))
    return meant;
  auto copies = origin->getAttrOfType<DenseI64ArrayAttr>("copies");
  for (ir::SegmentOp segment : stage.segments) {
    auto first = static_cast<int64_t>(segment.getFirst());
    auto count = static_cast<int64_t>(segment.getRepeat());
    if (!has<ir::AccumulateOp>(segment, label))
      continue;
    int64_t from = copies ? copies[0] : first,
            many = copies ? copies[1] : count;
    if (from + many <= first || first + count <= from)
      continue;
    if (meant.holder || from < first || first + count < from + many)
      return op->emitOpError("covers layers of several segments, needs one "
                             "operation per segment");
    meant = {segment, from - first, many};
  }
  if (!meant.holder)
    return op->emitOpError("covers layers that no segment of its stage has");
  return meant;
}

bool isGradient(const StageContents &stage, ir::AccumulatedOp sum) {
  return llvm::any_of(stage.segments, [&](ir::SegmentOp segment) {
    return has<ir::ParameterOp>(segment, sum.getLabel());
  });
}

std::vector<std::vector<ir::StageTask>>
tasksOf(ModuleOp partitioned, planner::ScheduleKind kind, int microBatches) {
  auto stages = static_cast<int>(stagesOf(partitioned));
  uint64_t last = 0;
  for (auto segment : partitioned.getOps<ir::SegmentOp>())
    last = segment.getChunk().value_or(0);
  planner::ScheduleShape shape{
      kind, stages, static_cast<int>(last + 1) / stages, microBatches};
  // GPipe runs backward for the micro-batches in reverse order. Micro-batches
  // are therefore numbered in reverse, so that gradients are summed in the same
  // order as in all other schedules and have the same bits.
  auto numberOf = [&](int microBatch) {
    return kind == planner::ScheduleKind::gpipe ? microBatches - 1 - microBatch
                                                : microBatch;
  };
  std::vector<std::vector<ir::StageTask>> order;
  for (const std::vector<planner::Task> &tasks : planner::scheduleOf(shape)) {
    auto stage = static_cast<int>(order.size());
    std::vector<ir::StageTask> &own = order.emplace_back();
    for (const planner::Task &task : tasks)
      if (task.kind != planner::TaskKind::weightGradient)
        own.push_back({task.kind == planner::TaskKind::forward
                           ? ir::Phase::forward
                           : ir::Phase::backward,
                       task.chunk * stages + stage, numberOf(task.microBatch)});
  }
  return order;
}

void writeTasks(ModuleOp partitioned, planner::ScheduleKind kind,
                int microBatches) {
  Builder builder(partitioned.getContext());
  SmallVector<Attribute> stages;
  for (const auto &tasks : tasksOf(partitioned, kind, microBatches)) {
    SmallVector<int64_t> numbers;
    for (const ir::StageTask &task : tasks)
      numbers.append({task.phase == ir::Phase::forward ? 0 : 1, task.chunk,
                      task.microBatch});
    stages.push_back(builder.getDenseI64ArrayAttr(numbers));
  }
  partitioned->setAttr(ir::kTasksAttrName, builder.getArrayAttr(stages));
  partitioned->setAttr(ir::kMicroBatchesAttrName,
                       builder.getI64IntegerAttr(microBatches));
}

std::vector<std::vector<ir::StageTask>> readTasks(ModuleOp module) {
  std::vector<std::vector<ir::StageTask>> order;
  auto stages = module->getAttrOfType<ArrayAttr>(ir::kTasksAttrName);
  if (!stages)
    return order;
  for (Attribute stage : stages) {
    std::vector<ir::StageTask> &tasks = order.emplace_back();
    ArrayRef<int64_t> numbers = llvm::cast<DenseI64ArrayAttr>(stage);
    for (; numbers.size() >= 3; numbers = numbers.drop_front(3))
      tasks.push_back(
          {numbers[0] == 0 ? ir::Phase::forward : ir::Phase::backward,
           numbers[1], numbers[2]});
  }
  return order;
}

} // namespace mtplan::passes
