//===- split_segment.cpp - Splits a repeated segment ----------------------===//

#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "passes/layout/bridge.h"

using namespace mlir;

namespace mtplan::passes {

// Replaces the update's operators for the segment by one clone per part. Each
// clone covers the layers of its part.
static void splitUpdates(ir::SegmentOp segment, ArrayRef<ir::SegmentOp> parts) {
  llvm::StringSet<> labels;
  segment.walk([&](ir::AccumulateOp op) {
    if (op.getLabel().contains('*'))
      labels.insert(op.getLabel());
  });
  auto module = segment->getParentOfType<ModuleOp>();
  for (auto update : module.getOps<ir::UpdateOp>())
    for (auto accumulated : llvm::make_early_inc_range(
             update.getBody().front().getOps<ir::AccumulatedOp>())) {
      if (!labels.contains(accumulated.getLabel()))
        continue;
      auto copies = accumulated.getCopies();
      if (copies && (*copies)[0] != static_cast<int64_t>(segment.getFirst()))
        continue;
      SmallVector<Operation *> users(accumulated->getUsers());
      OpBuilder builder(accumulated);
      for (ir::SegmentOp part : parts) {
        auto range = builder.getDenseI64ArrayAttr(
            {static_cast<int64_t>(part.getFirst()),
             static_cast<int64_t>(part.getRepeat())});
        IRMapping mapping;
        builder.clone(*accumulated, mapping)->setAttr("copies", range);
        for (Operation *user : users)
          builder.clone(*user, mapping)->setAttr("copies", range);
      }
      for (Operation *user : users)
        user->erase();
      accumulated.erase();
    }
}

void splitSegment(ir::SegmentOp segment, ArrayRef<int> cuts) {
  if (cuts.empty())
    return;
  int first = static_cast<int>(segment.getFirst());
  int end = first + static_cast<int>(segment.getRepeat());
  SmallVector<int> starts{first};
  starts.append(cuts.begin(), cuts.end());
  starts.push_back(end);

  std::string name = segment.getSymName().str();
  OpBuilder builder(segment);
  SmallVector<ir::SegmentOp> parts;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    auto part = llvm::cast<ir::SegmentOp>(builder.clone(*segment));
    part.setFirst(starts[i]);
    part.setRepeat(starts[i + 1] - starts[i]);
    if (i > 0)
      part.setSymName((llvm::Twine(name) + "_" + llvm::Twine(starts[i])).str());
    parts.push_back(part);
  }
  splitUpdates(segment, parts);
  segment.erase();
}

} // namespace mtplan::passes
