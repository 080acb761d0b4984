//===- stage_contents.cpp - What a stage holds and does -------------------===//

#include "passes/schedule/stage_contents.h"

#include "passes/schedule/stages.h"
#include "passes/schedule/tasks.h"

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

} // namespace mtplan::passes
