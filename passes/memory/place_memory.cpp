//===- place_memory.cpp - Assigns memory to every tensor ------------------===//

#include "passes/memory/stage_places.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_PLACEMEMORYPASS
#include "passes/passes.h.inc"

namespace {

struct PlaceMemory : impl::PlaceMemoryPassBase<PlaceMemory> {
  using PlaceMemoryPassBase::PlaceMemoryPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::vector<StageContents> stages = contentsOfStages(module);
    if (!module->hasAttr(ir::kPartitionedAttrName) || stages.empty()) {
      module.emitError("has no program of one rank, or no tasks, to place");
      return signalPassFailure();
    }
    Type wider;
    if (gradientBytes == 4)
      wider = Float32Type::get(&getContext());
    for (StageContents &contents : stages) {
      StagePlaces places(std::move(contents), wider, offloads);
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
