//===- overlap_reductions.cpp - Overlaps reductions with backward ---------===//

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stage_contents.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_OVERLAPREDUCTIONSPASS
#include "passes/passes.h.inc"

namespace {

class Overlap {
public:
  Overlap(const StageContents &theStage, int64_t theMicroBatches)
      : stage(theStage), microBatches(theMicroBatches) {}

  LogicalResult mark(ir::AccumulatedOp sum) const {
    FailureOr<UpdatedCopies> copies = updatedCopies(stage, sum);
    if (failed(copies))
      return failure();
    SmallVector<ir::AccumulateOp> terms;
    for (ir::SegmentOp segment : stage.segments)
      if (!copies->holder || copies->holder == segment)
        segment.walk([&](ir::AccumulateOp op) {
          if (op.getLabel() == sum.getLabel())
            terms.push_back(op);
        });
    ir::SegmentOp last = lastSegmentOf(terms);
    if (!last || static_cast<int64_t>(last.getRepeat()) != copies->count)
      return success();
    // If the label has no `*`, the runs of several layers may add to one
    // accumulator.
    const bool isOfOneRun = sum.getLabel().contains('*') ||
                            (terms.size() == 1 && !isOfCopies(last));
    markOverlapped(sum, last.getSymNameAttr(), isOfOneRun);
    return success();
  }

private:
  // Returns the segment that adds the last of `terms` in a step. Returns null
  // if the last term is not added in a backward run of the last micro-batch, or
  // if there are several accumulators.
  ir::SegmentOp lastSegmentOf(ArrayRef<ir::AccumulateOp> terms) const {
    if (llvm::any_of(terms, [](ir::AccumulateOp op) {
          return op->hasAttr(ir::kOwnSumAttrName);
        }))
      return {};
    for (const ir::StageTask &task : llvm::reverse(stage.tasks)) {
      const bool isForward = task.phase == ir::Phase::forward;
      ir::SegmentOp last;
      for (ir::AccumulateOp op : terms) {
        auto segment = op->getParentOfType<ir::SegmentOp>();
        if (static_cast<int64_t>(segment.getChunk().value_or(0)) !=
                task.chunk ||
            llvm::isa<ir::SegmentOp>(op->getParentOp()) != isForward)
          continue;
        // Backward runs the segments of a chunk in reverse order.
        if (!last || segment->isBeforeInBlock(last) != isForward)
          last = segment;
      }
      if (last)
        return !isForward && task.microBatch + 1 == microBatches
                   ? last
                   : ir::SegmentOp();
    }
    return {};
  }

  // Marks the reductions of `sum` that can overlap with the backward program of
  // `segment`. A reduce-scatter overwrites the next layer's gradient with its
  // shard, so this gradient must already be reduced. A reduce-scatter can
  // therefore overlap only if a single run adds to each accumulator.
  static void markOverlapped(ir::AccumulatedOp sum, StringAttr segment,
                             bool isOfOneRun) {
    const SmallVector<Operation *> hops = collectivesAfter(sum.getValue());
    const bool isOfStage = llvm::none_of(hops, sumsOverStages);
    // `isShard` says whether an earlier collective of `hops` has scattered the
    // sum. `isReduced` says whether an earlier collective has reduced the sum
    // over an axis that is not an axis of replicas.
    bool isShard = false, isReduced = false;
    for (Operation *hop : hops) {
      const bool isScatter = llvm::isa<ir::ReduceScatterOp>(hop);
      const bool overReplicas = ir::isReplicaAxis(axisOf(hop).getValue());
      if (!(isScatter || llvm::isa<ir::AllReduceOp>(hop)) ||
          sumsOverStages(hop) || (isShard && !overReplicas) ||
          (isScatter && (isShard || isReduced || !overReplicas || !isOfStage ||
                         !isOfOneRun)))
        return;
      hop->setAttr(ir::kOverlappedAttrName, segment);
      isShard |= isScatter;
      isReduced |= !overReplicas;
    }
  }

  const StageContents &stage;
  const int64_t microBatches;
};

struct OverlapReductions : impl::OverlapReductionsPassBase<OverlapReductions> {
  void runOnOperation() override {
    auto microBatches =
        getOperation()->getAttrOfType<IntegerAttr>(ir::kMicroBatchesAttrName);
    const std::vector<StageContents> stages = contentsOfStages(getOperation());
    if (stages.empty() || !microBatches) {
      getOperation().emitError("has no tasks, so the last run is unknown");
      return signalPassFailure();
    }
    for (const StageContents &stage : stages) {
      ir::UpdateOp update = stage.update;
      if (!update)
        continue;
      const Overlap overlap(stage, microBatches.getInt());
      for (auto sum : update.getBody().front().getOps<ir::AccumulatedOp>())
        if (isGradient(stage, sum) && failed(overlap.mark(sum)))
          return signalPassFailure();
    }
  }
};

} // namespace

} // namespace mtplan::passes
