//===- split_stages.cpp - A program for every stage -----------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "passes/passes.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_SPLITSTAGESPASS
#include "passes/passes.h.inc"

namespace {

class StageSplitter {
public:
  StageSplitter(ModuleOp m, int64_t stageCount)
      : module(m), stages(stageCount), builder(m.getContext()) {}

  LogicalResult run() {
    if (failed(checkChunks(module, stages)))
      return failure();
    widenMesh();
    SmallVector<ir::SegmentOp> segments(module.getOps<ir::SegmentOp>());
    for (std::size_t i = 1; i < segments.size(); ++i)
      if (segments[i].getChunk() != segments[i - 1].getChunk())
        connect(segments[i - 1], segments[i]);
    for (ir::UpdateOp update : llvm::to_vector(module.getOps<ir::UpdateOp>()))
      if (failed(split(update)))
        return failure();
    return success();
  }

private:
  // Adds the axis of stages to the mesh. The axis is outermost, so that the
  // ranks of different stages, which communicate least, are farthest apart.
  void widenMesh() {
    ir::MeshAttr mesh = ir::meshOf(module);
    SmallVector<StringAttr> names{builder.getStringAttr(ir::kStageAxis)};
    SmallVector<int64_t> sizes{stages};
    names.append(mesh.getNames().begin(), mesh.getNames().end());
    sizes.append(mesh.getSizes().begin(), mesh.getSizes().end());
    module->setAttr(ir::kMeshAttrName,
                    ir::MeshAttr::get(module.getContext(), names, sizes));
    module->removeAttr(ir::kStagesAttrName);
  }

  // Inserts a sending and a receiving segment between `last`, the last segment
  // of a chunk, and `first`, the first segment of the next chunk. Does nothing
  // if neither a value nor a gradient crosses.
  void connect(ir::SegmentOp last, ir::SegmentOp first) {
    SmallVector<Value> values(last.getYield().getValues());
    SmallVector<Type> gradients;
    ir::BackwardOp backward = first.getBackward();
    if (backward)
      llvm::append_range(gradients, backward.getYield().getValues().getTypes());
    if (values.empty() && gradients.empty())
      return;
    std::string name =
        "carried_" + std::to_string(static_cast<int64_t>(*first.getChunk()));
    builder.setInsertionPoint(first);
    ir::SegmentOp out = addSegment("send", last),
                  in = addSegment("receive", first);
    out.setLayoutsAttr(last.getYield().getLayoutsAttr());
    auto to = builder.getI64IntegerAttr(stageOf(first, stages));
    auto from = builder.getI64IntegerAttr(stageOf(last, stages));

    builder.setInsertionPointToStart(&out.getBlock());
    for (auto [i, value] : llvm::enumerate(values))
      builder.create<ir::SendOp>(
          last.getLoc(), message(name, i),
          out.getBlock().addArgument(value.getType(), value.getLoc()), to);
    if (backward) {
      ir::BackwardOp half = addBackward(last);
      SmallVector<Value> received;
      for (auto [i, type] : llvm::enumerate(gradients))
        received.push_back(builder.create<ir::ReceiveOp>(
            last.getLoc(), type, message(name, i, ".grad"), to));
      builder.create<ir::YieldOp>(last.getLoc(), received,
                                  last.getBackward().getLayoutsAttr());
      builder.setInsertionPointAfter(half);
    }
    builder.create<ir::YieldOp>(last.getLoc(), ValueRange(), ArrayAttr());

    builder.setInsertionPointToStart(&in.getBlock());
    SmallVector<Value> received;
    for (auto [i, value] : llvm::enumerate(values))
      received.push_back(builder.create<ir::ReceiveOp>(
          first.getLoc(), value.getType(), message(name, i), from));
    if (backward) {
      ir::BackwardOp half = addBackward(first);
      half.setLayoutsAttr(backward.getYield().getLayoutsAttr());
      for (auto [i, type] : llvm::enumerate(gradients))
        builder.create<ir::SendOp>(
            first.getLoc(), message(name, i, ".grad"),
            half.getBlock().addArgument(type, first.getLoc()), from);
      builder.create<ir::YieldOp>(first.getLoc(), ValueRange(), ArrayAttr());
      builder.setInsertionPointAfter(half);
    }
    builder.create<ir::YieldOp>(first.getLoc(), received,
                                first.getLayoutsAttr());
  }

  StringAttr message(StringRef name, std::size_t index, StringRef end = "") {
    return builder.getStringAttr(name + "." + llvm::Twine(index) + end);
  }

  ir::SegmentOp addSegment(StringRef what, ir::SegmentOp like) {
    std::string name =
        (what + "_" + llvm::Twine(static_cast<int64_t>(*like.getChunk())))
            .str();
    while (SymbolTable::lookupSymbolIn(module, name))
      name += '_';
    auto segment = builder.create<ir::SegmentOp>(
        like.getLoc(), builder.getStringAttr(name),
        builder.getI64IntegerAttr(1), builder.getI64IntegerAttr(0),
        like.getChunkAttr(), ArrayAttr());
    segment.getBody().emplaceBlock();
    return segment;
  }

  ir::BackwardOp addBackward(ir::SegmentOp like) {
    auto half = builder.create<ir::BackwardOp>(like.getLoc(), ArrayAttr());
    builder.setInsertionPointToStart(&half.getBody().emplaceBlock());
    return half;
  }

  LogicalResult split(ir::UpdateOp update) {
    Block &block = update.getBody().front();
    SmallVector<ir::AccumulatedOp> reads(block.getOps<ir::AccumulatedOp>());
    for (ir::AccumulatedOp read : reads)
      if (failed(sumOverHolders(read)))
        return failure();
    llvm::DenseSet<Operation *> placed;
    builder.setInsertionPoint(update);
    for (int64_t stage = 0; stage < stages; ++stage) {
      auto own = builder.create<ir::UpdateOp>(update.getLoc(),
                                              builder.getI64IntegerAttr(stage));
      OpBuilder inside = OpBuilder::atBlockEnd(&own.getBody().emplaceBlock());
      IRMapping here;
      for (Operation &op : block)
        if (runsOn(&op, stage, here)) {
          inside.clone(op, here);
          placed.insert(&op);
        }
      if (own.getBody().front().empty())
        own.erase();
    }
    for (Operation &op : block)
      if (!placed.contains(&op))
        return op.emitOpError("reads values that no single stage has");
    update.erase();
    return success();
  }

  bool runsOn(Operation *op, int64_t stage, const IRMapping &here) {
    if (auto read = llvm::dyn_cast<ir::AccumulatedOp>(op))
      return holdersOf(read, stages).count(stage) > 0;
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return here.contains(operand); });
  }

  // If several stages add to the accumulator of a label without a `*`, adds an
  // all-reduce over these stages. The all-reduce follows the collectives within
  // a stage, because the tensor is smallest after these.
  LogicalResult sumOverHolders(ir::AccumulatedOp read) {
    std::set<int64_t> holders = holdersOf(read, stages);
    if (holders.size() < 2)
      return success();
    if (read.getLabel().contains('*'))
      return checkCopies(read);
    Value value = read.getValue();
    if (auto within = collectivesAfter(value); !within.empty())
      value = within.back()->getResult(0);
    OpBuilder after(module.getContext());
    after.setInsertionPointAfterValue(value);
    auto sum = after.create<ir::AllReduceOp>(
        read.getLoc(), value.getType(), value,
        after.getStringAttr(ir::kStageAxis),
        after.getDenseI64ArrayAttr(
            SmallVector<int64_t>(holders.begin(), holders.end())),
        /*max=*/UnitAttr(), read.getLabelAttr());
    value.replaceAllUsesExcept(sum.getResult(), sum);
    return success();
  }

  // Checks that no layer of a label with `*` is on two stages. Different layers
  // are separate parameters and need no sum.
  LogicalResult checkCopies(ir::AccumulatedOp read) {
    std::map<int64_t, int64_t> holder; // layer -> stage
    for (auto segment : module.getOps<ir::SegmentOp>()) {
      bool adds = false;
      segment.walk([&](ir::AccumulateOp term) {
        adds |= term.getLabel() == read.getLabel();
      });
      auto first = static_cast<int64_t>(segment.getFirst());
      auto repeat = static_cast<int64_t>(segment.getRepeat());
      int64_t stage = stageOf(segment, stages);
      for (int64_t copy = first; adds && copy < first + repeat; ++copy)
        if (auto [entry, isNew] = holder.try_emplace(copy, stage);
            !isNew && entry->second != stage)
          return read.emitOpError("reads copy ")
                 << copy << " of " << read.getLabelAttr() << ", which stages "
                 << entry->second << " and " << stage
                 << " share: name what is shared without a '*'";
    }
    return success();
  }

  ModuleOp module;
  int64_t stages;
  OpBuilder builder;
};

struct SplitStagesPass : impl::SplitStagesPassBase<SplitStagesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto placed = module->getAttrOfType<IntegerAttr>(ir::kStagesAttrName);
    if (!placed)
      return;
    if (!module->hasAttr(ir::kPartitionedAttrName) || !ir::meshOf(module)) {
      module.emitError("is not partitioned: split it over stages after that");
      return signalPassFailure();
    }
    if (placed.getInt() < 2 || ir::meshOf(module).sizeOf(ir::kStageAxis) > 0) {
      module.emitError("cannot be split over ")
          << placed.getInt() << " stages on mesh " << ir::meshOf(module);
      return signalPassFailure();
    }
    if (failed(StageSplitter(module, placed.getInt()).run()))
      signalPassFailure();
  }
};

} // namespace
} // namespace mtplan::passes
