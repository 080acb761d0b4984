//===- recompute.cpp - Recomputes activations in backward -----------------===//

#include "passes/schedule/recompute.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

#include "passes/layout/planner_op.h"
#include "passes/passes.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_RECOMPUTEPASS
#include "passes/passes.h.inc"

namespace {

// Returns whether `value` is an argument, a parameter or an input, which
// backward can read without computing it.
bool isGiven(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || llvm::isa<ir::ParameterOp, ir::InputOp>(op);
}

// Returns the value from which a chain of reshards computes `value`, or `value`
// itself.
Value rootOf(Value value) {
  while (auto reshard = value.getDefiningOp<ir::ReshardOp>())
    value = reshard.getInput();
  return value;
}

class Recomputer {
public:
  explicit Recomputer(ir::SegmentOp op)
      : forward(op.getBlock()), backward(op.getBackward().getBlock()),
        builder(op.getContext()) {
    if (ir::MeshAttr attr = ir::meshOf(op))
      mesh = toPlanner(attr);
  }

  // Recomputes, at the start of backward and in the order of forward, all
  // values that backward reads.
  void everything() {
    llvm::DenseSet<Operation *> needed;
    for (Operation &op : backward)
      for (Value operand : op.getOperands())
        need(operand, needed);
    builder.setInsertionPointToStart(&backward);
    IRMapping anew;
    llvm::DenseSet<Operation *> clones;
    for (Operation &op : forward)
      if (needed.contains(&op))
        clones.insert(clone(&op, anew));
    for (Operation &op : backward)
      if (!clones.contains(&op))
        for (OpOperand &operand : op.getOpOperands())
          operand.set(anew.lookupOrDefault(operand.get()));
    shareConversions();
    dropUnread();
  }

  // Recomputes each attention core right before its gradient, from operands of
  // the gradient.
  void attentionCores() {
    SmallVector<std::pair<ir::AttentionOp, ir::AttentionGradOp>> pairs;
    for (auto core : forward.getOps<ir::AttentionOp>())
      for (auto gradient : backward.getOps<ir::AttentionGradOp>())
        if (rootOf(gradient.getLse()) == core.getLse())
          pairs.emplace_back(core, gradient);
    for (auto [core, gradient] : pairs)
      recomputeCore(core, gradient);
    dropUnread();
  }

private:
  void need(Value value, llvm::DenseSet<Operation *> &needed) {
    Operation *op = value.getDefiningOp();
    if (isGiven(value) || op->getBlock() != &forward ||
        !needed.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      need(operand, needed);
  }

  Operation *clone(Operation *op, IRMapping &anew) {
    Operation *made = builder.clone(*op, anew);
    if (auto label = made->getAttrOfType<StringAttr>("label"))
      made->setAttr("label",
                    builder.getStringAttr(label.getValue() + ".again"));
    return made;
  }

  // Removes duplicate reshards from the backward half, so that gradients reuse
  // the weights that are all-gathered for recomputation.
  void shareConversions() {
    llvm::MapVector<std::pair<Value, Attribute>, Value> made;
    for (auto reshard :
         llvm::make_early_inc_range(backward.getOps<ir::ReshardOp>())) {
      auto [entry, isNew] = made.insert(
          {{reshard.getInput(), reshard.getTarget()}, reshard.getResult()});
      if (isNew)
        continue;
      reshard.replaceAllUsesWith(entry->second);
      reshard.erase();
    }
  }

  void dropUnread() {
    for (Block *block : {&backward, &forward})
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
        if (llvm::isa<ir::ReshardOp, ir::InputOp>(op) && op.use_empty())
          op.erase();
  }

  void recomputeCore(ir::AttentionOp core, ir::AttentionGradOp gradient) {
    builder.setInsertionPoint(gradient);
    IRMapping anew;
    auto mapTo = [&](Value operand, Value there) {
      anew.map(operand, as(there, operand));
    };
    mapTo(core.getQuery(), gradient.getQuery());
    mapTo(core.getKey(), gradient.getKey());
    mapTo(core.getValue(), gradient.getValue());
    if (core.getBias())
      mapTo(core.getBias(), gradient.getBias());
    auto made = llvm::cast<ir::AttentionOp>(clone(core, anew));
    gradient.getOutputMutable().assign(
        as(made.getResult(), gradient.getOutput()));
    gradient.getLseMutable().assign(as(made.getLse(), gradient.getLse()));
  }

  Value as(Value value, Value like) {
    if (!mesh)
      return value;
    std::optional<planner::Layout> from = layoutOf(value, *mesh),
                                   to = layoutOf(like, *mesh);
    if (!from || !to || *from == *to)
      return value;
    return builder.create<ir::ReshardOp>(
        value.getLoc(), value.getType(), value,
        toAttr(builder.getContext(), *from, *mesh),
        toAttr(builder.getContext(), *to, *mesh), causeOf(value));
  }

  StringAttr causeOf(Value value) {
    Operation *op = rootOf(value).getDefiningOp();
    auto label = op ? op->getAttrOfType<StringAttr>("label") : StringAttr();
    return label ? label : builder.getStringAttr("carried");
  }

  Block &forward, &backward;
  OpBuilder builder;
  std::optional<planner::Mesh> mesh;
};

struct RecomputePass : impl::RecomputePassBase<RecomputePass> {
  using impl::RecomputePassBase<RecomputePass>::RecomputePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (what != "full" && what != "selective") {
      module.emitError("recomputes full or selective, not \"") << what << '"';
      return signalPassFailure();
    }
    if (module->hasAttr(ir::kPartitionedAttrName)) {
      module.emitError("is partitioned: recompute before that");
      return signalPassFailure();
    }
    for (auto segment : module.getOps<ir::SegmentOp>())
      if (segment.getBackward() && segment.getRepeat() > 1)
        recompute(segment, what == "full" ? planner::Recompute::full
                                          : planner::Recompute::selective);
  }
};

} // namespace

void recompute(ir::SegmentOp segment, planner::Recompute what) {
  Recomputer recomputer(segment);
  if (what == planner::Recompute::full)
    recomputer.everything();
  else if (what == planner::Recompute::selective)
    recomputer.attentionCores();
}

SmallVector<Value> savedValues(ir::SegmentOp segment) {
  llvm::DenseSet<Value> read;
  if (ir::BackwardOp backward = segment.getBackward())
    for (Operation &op : backward.getBlock())
      read.insert(op.operand_begin(), op.operand_end());
  SmallVector<Value> saved;
  auto note = [&](ValueRange values) {
    for (Value value : values)
      if (read.contains(value))
        saved.push_back(value);
  };
  note(segment.getBlock().getArguments());
  for (Operation &op : segment.getBlock())
    if (!llvm::isa<ir::ParameterOp, ir::InputOp>(op))
      note(op.getResults());
  return saved;
}

RecomputedRuns cutForRecompute(const planner::ModelGraph &graph,
                               const std::vector<planner::SegmentPlan> &plans,
                               const std::vector<int> &parts, int layers) {
  // Says by layer, in model order, whether the layer is recomputed.
  std::vector<bool> again;
  for (int part : parts)
    for (int i = 0; i < part; ++i)
      again.push_back(layers < 0 || i < layers);
  RecomputedRuns runs;
  std::size_t layer = 0;
  for (const planner::SegmentPlan &plan : plans) {
    bool repeats =
        isLayer(graph.segments[static_cast<std::size_t>(plan.segment)]);
    int done = 0;
    while (done < plan.count) {
      auto isAgain = [&](int copy) {
        std::size_t index = layer + static_cast<std::size_t>(copy);
        return repeats && (index < again.size() ? again[index] : layers < 0);
      };
      int count = 1;
      while (done + count < plan.count &&
             isAgain(done + count) == isAgain(done))
        ++count;
      runs.plans.push_back(plan);
      runs.plans.back().first = plan.first + done;
      runs.plans.back().count = count;
      runs.again.push_back(isAgain(done));
      done += count;
    }
    if (repeats)
      layer += static_cast<std::size_t>(plan.count);
  }
  return runs;
}

} // namespace mtplan::passes
