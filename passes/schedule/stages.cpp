//===- stages.cpp - The assignment of segments to stages ------------------===//

#include "passes/schedule/stages.h"

#include "mlir/IR/Builders.h"

#include "passes/layout/planner_op.h"

using namespace mlir;

namespace mtplan::passes {

void placeOnStages(ModuleOp module,
                   const std::vector<planner::PipelinePart> &parts,
                   int stages) {
  if (stages == 1)
    return;
  std::size_t part = 0;
  int64_t room = 0; // layers of the part that are not assigned yet
  auto enter = [&] {
    for (const planner::RepeatRange &range : parts[part])
      room += range.count;
  };
  enter();
  Builder builder(module.getContext());
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    if (room == 0) {
      ++part;
      enter();
    }
    segment.setChunkAttr(builder.getI64IntegerAttr(static_cast<int64_t>(part)));
    room -= static_cast<int64_t>(segment.getRepeat());
    assert(room >= 0 && "plans are cut where parts are");
  }
  module->setAttr(ir::kStagesAttrName, builder.getI64IntegerAttr(stages));
}

int64_t stagesOf(ModuleOp module) {
  if (auto placed = module->getAttrOfType<IntegerAttr>(ir::kStagesAttrName))
    return placed.getInt();
  ir::MeshAttr mesh = meshAround(module);
  return mesh ? std::max<int64_t>(1, mesh.sizeOf(ir::kStageAxis)) : 1;
}

int64_t stageOf(ir::SegmentOp segment, int64_t stages) {
  return static_cast<int64_t>(segment.getChunk().value_or(0)) % stages;
}

std::set<int64_t> holdersOf(ir::AccumulatedOp read, int64_t stages) {
  std::set<int64_t> holders;
  auto module = read->getParentOfType<ModuleOp>();
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    if (read.getCopies() && read.getLabel().contains('*') &&
        (*read.getCopies())[0] != static_cast<int64_t>(segment.getFirst()))
      continue;
    segment.walk([&](ir::AccumulateOp term) {
      if (term.getLabel() == read.getLabel())
        holders.insert(stageOf(segment, stages));
    });
  }
  return holders;
}

bool sumsOverStages(Operation *op) {
  auto sum = llvm::dyn_cast<ir::AllReduceOp>(op);
  return sum && sum.getAxis() == ir::kStageAxis;
}

StringAttr axisOf(Operation *op) {
  return op->getAttrOfType<StringAttr>("axis");
}

SmallVector<Operation *> collectivesBehind(Value value) {
  SmallVector<Operation *> found;
  while (value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    if (!axisOf(user))
      break;
    found.push_back(user);
    value = user->getResult(0);
  }
  return found;
}

} // namespace mtplan::passes
