//===- place_memory.cpp - Every tensor gets its place ---------------------===//

#include "passes/memory/stage_places.h"
#include "passes/passes.h"
#include "passes/schedule/stages.h"
#include "passes/schedule/tasks.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_PLACEMEMORYPASS
#include "passes/passes.h.inc"

namespace {

struct PlaceMemory : impl::PlaceMemoryPassBase<PlaceMemory> {
  using PlaceMemoryPassBase::PlaceMemoryPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::vector<std::vector<ir::StageTask>> tasks = readTasks(module);
    if (!module->hasAttr(ir::kPartitionedAttrName) || tasks.empty()) {
      module.emitError("has no program of one rank, or no tasks, to place");
      return signalPassFailure();
    }
    Type wider;
    if (gradientBytes == 4)
      wider = Float32Type::get(&getContext());
    auto stages = static_cast<int64_t>(tasks.size());
    for (int64_t stage = 0; stage < stages; ++stage) {
      StageContents contents;
      contents.tasks = tasks[static_cast<std::size_t>(stage)];
      for (auto segment : module.getOps<ir::SegmentOp>())
        if (stageOf(segment, stages) == stage)
          contents.segments.push_back(segment);
      for (auto update : module.getOps<ir::UpdateOp>())
        if (static_cast<int64_t>(update.getStage().value_or(0)) == stage)
          contents.update = update;
      StagePlaces places(std::move(contents), wider, sumsPerUse, scattersEarly,
                         offloads);
      if (failed(places.run()))
        return signalPassFailure();
      for (const Fill &fill : places.fills()) {
        used += static_cast<uint64_t>(fill.used);
        peak += static_cast<uint64_t>(fill.peak);
      }
    }
  }
};

} // namespace

} // namespace mtplan::passes
