//===- tasks.cpp - In which order a stage works ---------------------------===//

#include "passes/schedule/tasks.h"

#include "mlir/IR/Builders.h"

#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

std::vector<std::vector<ir::StageTask>>
tasksOf(ModuleOp partitioned, planner::ScheduleKind kind, int microBatches) {
  auto stages = static_cast<int>(stagesOf(partitioned));
  uint64_t last = 0;
  for (auto segment : partitioned.getOps<ir::SegmentOp>())
    last = segment.getChunk().value_or(0);
  planner::ScheduleShape shape{
      kind, stages, static_cast<int>(last + 1) / stages, microBatches};
  // GPipe runs backward through micro-batches in the reverse order. The last
  // micro-batch is numbered first, so that backward adds gradients up in the
  // order of every other schedule, to the same bits.
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
