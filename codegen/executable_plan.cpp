//===- executable_plan.cpp - A placed step as a plan to run ---------------===//

#include "codegen/executable_plan.h"

#include "codegen/stage_writer.h"
#include "codegen/waits.h"

using namespace mlir;

namespace mtplan::codegen {

namespace {

// Sets Plan::globalBatch and Plan::sequence from the module's inputs.
void readExtents(ModuleOp module, const ir::MeshView &mesh,
                 runtime::Plan &plan) {
  module.walk([&](ir::InputOp input) {
    auto type = llvm::cast<RankedTensorType>(input.getType());
    for (auto [d, dim] : llvm::enumerate(input.getDims())) {
      int64_t extent = type.getDimSize(static_cast<unsigned>(d));
      if (auto layout = input.getLayout())
        for (auto axis : layout->getDims()[d].getAsRange<StringAttr>())
          extent *= mesh.sizeOf(mesh.axis(axis.getValue()));
      StringRef counts = llvm::cast<StringAttr>(dim).getValue();
      if (counts == "batch")
        plan.globalBatch = extent * plan.microBatches;
      else if (counts == "sequence")
        plan.sequence = std::max(plan.sequence, extent);
    }
  });
}

} // namespace

FailureOr<runtime::Plan> executablePlanOf(ModuleOp placed,
                                          const std::string &model) {
  auto tasks = placed->getAttrOfType<ArrayAttr>(ir::kTasksAttrName);
  auto microBatches =
      placed->getAttrOfType<IntegerAttr>(ir::kMicroBatchesAttrName);
  auto mesh = placed->getAttrOfType<ir::MeshAttr>(ir::kMeshAttrName);
  if (!tasks || !microBatches || !mesh)
    return placed.emitError("has no mesh, tasks or number of micro-batches: it "
                            "is not a step to be run");
  runtime::Plan plan;
  plan.model = model;
  plan.ranks = static_cast<int>(mesh.ranks());
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
    plan.mesh.push_back({name.str(), static_cast<int>(size)});
  plan.microBatches = static_cast<int>(microBatches.getInt());
  if (auto layers = placed->getAttrOfType<IntegerAttr>(ir::kLayersAttrName))
    plan.layers = layers.getInt();
  PlanNames names(placed, plan);
  readExtents(placed, names.mesh, plan);
  auto stages = static_cast<int64_t>(tasks.size());
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<ir::SegmentOp> segments;
    for (auto segment : placed.getOps<ir::SegmentOp>())
      if (segment.getStage().value_or(0) == stage)
        segments.push_back(segment);
    ir::UpdateOp update;
    for (auto one : placed.getOps<ir::UpdateOp>())
      if (static_cast<int64_t>(one.getStage().value_or(0)) == stage)
        update = one;
    FailureOr<runtime::Stage> written =
        StageWriter(names, stage)
            .write(llvm::cast<DenseI64ArrayAttr>(
                       tasks[static_cast<unsigned>(stage)]),
                   segments, update);
    if (failed(written))
      return failure();
    plan.stages.push_back(std::move(*written));
  }
  names.writeStreams();
  writeWaits(plan);
  return plan;
}

} // namespace mtplan::codegen
