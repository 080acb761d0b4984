//===- write_update.cpp - The plan of what happens once a step ------------===//

#include "passes/layout/write_update.h"

#include "mlir/IR/Builders.h"

#include "passes/layout/planner_op.h"

using namespace mlir;

namespace mtplan::passes {

namespace {

class UpdateWriter {
public:
  UpdateWriter(ir::UpdateOp op, const planner::ModelGraph &model,
               const std::vector<planner::SegmentPlan> &p,
               const planner::Mesh &m)
      : update(op), graph(model), plans(p), mesh(m), builder(op.getContext()) {}

  void write() {
    for (auto op : llvm::make_early_inc_range(
             update.getBody().front().getOps<ir::AccumulatedOp>())) {
      if (const planner::ParameterState *state = stateOf(op))
        writeParameter(op, *state);
      else
        writeReported(op);
    }
  }

private:
  ir::LayoutAttr attr(const planner::Layout &layout) {
    return toAttr(builder.getContext(), layout, mesh);
  }

  // How the plans keep what `op` is the gradient of; null: no parameter.
  const planner::ParameterState *stateOf(ir::AccumulatedOp op) const {
    for (const planner::SegmentPlan &plan : plans) {
      if (op.getCopies() && (*op.getCopies())[0] != plan.first)
        continue;
      for (std::size_t p = 0; p < plan.parameters.size(); ++p)
        if (plan.parameters[p] && graph.parameters[p].name == op.getLabel())
          return &*plan.parameters[p];
    }
    return nullptr;
  }

  // What the segment that accumulates it, or these copies of it, has written.
  planner::Layout reportedLayout(ir::AccumulatedOp op) const {
    ir::LayoutAttr layout;
    for (auto segment :
         update->getParentOfType<ModuleOp>().getOps<ir::SegmentOp>()) {
      if (op.getCopies() &&
          (*op.getCopies())[0] != static_cast<int64_t>(segment.getFirst()))
        continue;
      for (auto term : segment.getBlock().getOps<ir::AccumulateOp>())
        if (term.getLabel() == op.getLabel())
          layout = term.getLayoutAttr();
    }
    assert(layout && "a reported value is accumulated somewhere");
    return *toPlanner(layout, mesh);
  }

  // `value` in the layout `to`, made right after it.
  Value reshard(Value value, const planner::Layout &from,
                const planner::Layout &to, StringAttr cause) {
    if (from == to)
      return value;
    builder.setInsertionPointAfter(value.getDefiningOp());
    auto changed = builder.create<ir::ReshardOp>(
        value.getLoc(), value.getType(), value, attr(from), attr(to), cause);
    value.replaceAllUsesExcept(changed.getResult(), changed);
    return changed.getResult();
  }

  void writeReported(ir::AccumulatedOp op) {
    planner::Layout made = reportedLayout(op);
    op.setLayoutAttr(attr(made));
    reshard(op.getValue(), made, planner::Layout::replicated(made.dims.size()),
            op.getLabelAttr());
  }

  void writeParameter(ir::AccumulatedOp op,
                      const planner::ParameterState &state) {
    planner::Layout made = planner::accumulatorLayout(state, mesh);
    op.setLayoutAttr(attr(made));
    Value gradient =
        reshard(op.getValue(), made, state.owned(), op.getLabelAttr());
    if (state.owned() == state.stored)
      return;
    for (Operation *user : llvm::make_early_inc_range(gradient.getUsers()))
      if (auto adamw = llvm::dyn_cast<ir::AdamwOp>(user))
        splitState(adamw, state);
  }

  void splitState(ir::AdamwOp op, const planner::ParameterState &state) {
    builder.setInsertionPoint(op);
    auto split = builder.create<ir::AdamwOp>(
        op.getLoc(), op.getGradient().getType(), op.getLabelAttr(),
        op.getGradient(), op.getDecayAttr(), attr(state.owned()),
        op.getCopiesAttr());
    Value whole = reshard(split.getUpdated(), state.owned(), state.stored,
                          op.getLabelAttr());
    builder.setInsertionPoint(op);
    builder.create<ir::StoreOp>(op.getLoc(), op.getLabelAttr(), whole,
                                op.getCopiesAttr());
    op.erase();
  }

  ir::UpdateOp update;
  const planner::ModelGraph &graph;
  const std::vector<planner::SegmentPlan> &plans;
  const planner::Mesh &mesh;
  OpBuilder builder;
};

} // namespace

void writeUpdate(ir::UpdateOp update, const planner::ModelGraph &graph,
                 const std::vector<planner::SegmentPlan> &plans,
                 const planner::Mesh &mesh) {
  UpdateWriter(update, graph, plans, mesh).write();
}

} // namespace mtplan::passes
