//===- stages.cpp - The assignment of segments to stages ------------------===//

#include "passes/schedule/stages.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mtplan::passes {

void placeOnStages(ModuleOp module,
                   const std::vector<planner::PipelinePart> &parts,
                   int stages) {
  if (stages == 1)
    return;
  std::size_t part = 0;
  int64_t layersLeft = 0; // layers of the part that are not assigned yet
  auto enter = [&] {
    for (const planner::RepeatRange &range : parts[part])
      layersLeft += range.count;
  };
  enter();
  Builder builder(module.getContext());
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    if (layersLeft == 0) {
      ++part;
      enter();
    }
    segment.setChunkAttr(builder.getI64IntegerAttr(static_cast<int64_t>(part)));
    layersLeft -= static_cast<int64_t>(segment.getRepeat());
    assert(layersLeft >= 0 && "plans are cut where parts are");
  }
  module->setAttr(ir::kStagesAttrName, builder.getI64IntegerAttr(stages));
}

int64_t stagesOf(ModuleOp module) {
  if (auto placed = module->getAttrOfType<IntegerAttr>(ir::kStagesAttrName))
    return placed.getInt();
  ir::MeshAttr mesh = ir::meshOf(module);
  return mesh ? std::max<int64_t>(1, mesh.sizeOf(ir::kStageAxis)) : 1;
}

int64_t stageOf(ir::SegmentOp segment, int64_t stages) {
  return static_cast<int64_t>(segment.getChunk().value_or(0)) % stages;
}

LogicalResult checkChunks(ModuleOp module, int64_t stages) {
  int64_t count = 0;
  ir::SegmentOp last;
  for (auto segment : module.getOps<ir::SegmentOp>()) {
    if (!segment.getChunk())
      return segment.emitOpError("has no chunk, but the module has ")
             << stages << " stages";
    auto chunk = static_cast<int64_t>(*segment.getChunk());
    if (chunk != count && chunk + 1 != count)
      return segment.emitOpError("is of chunk ")
             << chunk << ", needs "
             << (count > 0 ? std::to_string(count - 1) + " or " : "") << count;
    count = chunk + 1;
    last = segment;
  }
  if (count % stages != 0)
    return last.emitOpError("is in the last of ")
           << count << " chunks, which is not a multiple of the " << stages
           << " stages";
  return success();
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

SmallVector<Operation *> collectivesAfter(Value value) {
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
