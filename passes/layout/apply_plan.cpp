//===- apply_plan.cpp - Writing a plan into the module --------------------===//

#include "mlir/IR/Builders.h"

#include "passes/layout/bridge.h"
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

  // Returns `value` in the layout `to`. If the layout changes, a reshard right
  // after `value` replaces `value` in all its users.
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

static void writeUpdate(ir::UpdateOp update, const planner::ModelGraph &graph,
                        const std::vector<planner::SegmentPlan> &plans,
                        const planner::Mesh &mesh) {
  UpdateWriter(update, graph, plans, mesh).write();
}

namespace {

/// Applies one SegmentPlan to one SegmentOp, whose operators are in the order
/// of the graph.
class SegmentWriter {
public:
  SegmentWriter(ir::SegmentOp op, const planner::ModelGraph &model,
                const planner::SegmentPlan &p, const planner::Mesh &m)
      : segment(op), graph(model.segments[p.segment]), plan(p), mesh(m),
        context(op.getContext()) {}

  void write() {
    number();
    convert();
    for (auto [index, op] : llvm::enumerate(ops))
      writeOp(op, static_cast<int>(index));
    writeBoundary();
    writeAccumulations();
    for (ir::InputOp input : inputs)
      if (input->use_empty())
        input.erase();
  }

private:
  ir::LayoutAttr attr(const planner::Layout &layout) {
    return toAttr(context, layout, mesh);
  }
  ArrayAttr attrs(const std::vector<planner::Layout> &layouts) {
    SmallVector<Attribute> list;
    for (const planner::Layout &layout : layouts)
      list.push_back(attr(layout));
    return ArrayAttr::get(context, list);
  }

  // Numbers operators and tensors in program order, like build_graph.cpp.
  void number() {
    auto add = [&](Value value) {
      indices[value] = static_cast<int>(values.size());
      values.push_back(value);
    };
    for (Value argument : segment.getBlock().getArguments())
      add(argument);
    auto visit = [&](Block &block) {
      for (Operation &op : block) {
        if (!llvm::isa<ir::ComputeOp, ir::ParameterOp, ir::InputOp>(op))
          continue;
        for (Value result : op.getResults())
          add(result);
        if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op))
          ops.push_back(compute);
        if (auto input = llvm::dyn_cast<ir::InputOp>(op))
          inputs.push_back(input);
      }
    };
    visit(segment.getBlock());
    if (ir::BackwardOp backward = segment.getBackward()) {
      for (Value argument : backward.getBlock().getArguments())
        add(argument);
      visit(backward.getBlock());
    }
    assert(values.size() == graph.tensors.size() &&
           ops.size() == graph.ops.size() && "the graph is of this segment");
  }

  struct Version {
    int tensor;
    planner::Phase phase;
    planner::Layout layout;
    Value value;
  };

  Value find(int tensor, planner::Phase phase, const planner::Layout &layout) {
    for (const Version &version : versions)
      if (version.tensor == tensor && version.phase == phase &&
          version.layout == layout)
        return version.value;
    return {};
  }

  void convert() {
    for (std::size_t t = 0; t < values.size(); ++t)
      if (plan.made[t])
        for (auto phase : {planner::Phase::forward, planner::Phase::backward})
          if (phase == planner::Phase::forward || !plan.saved[t])
            versions.push_back(
                {static_cast<int>(t), phase, *plan.made[t], values[t]});
    // Forward conversions of a tensor precede its backward conversions, so the
    // saved value exists when the backward conversions start.
    for (const planner::PlannedConversion &conversion : plan.conversions) {
      if (conversion.phase == planner::Phase::backward)
        startBackward(conversion.tensor);
      emit(conversion);
    }
    for (std::size_t t = 0; t < values.size(); ++t)
      startBackward(static_cast<int>(t));
  }

  // If a forward value of the tensor is saved, adds this value as the tensor's
  // first version in backward, unless this version already exists.
  void startBackward(int t) {
    if (!plan.saved[t] || find(t, planner::Phase::backward, *plan.saved[t]))
      return;
    Value value = find(t, planner::Phase::forward, *plan.saved[t]);
    assert(value && "a saved layout is made in forward");
    versions.push_back({t, planner::Phase::backward, *plan.saved[t], value});
  }

  void emit(const planner::PlannedConversion &conversion) {
    int t = conversion.tensor;
    Value from = find(t, conversion.phase, conversion.from);
    assert(from && "conversions are in an order in which they can run");
    OpBuilder builder(context);
    place(builder, t, conversion.phase, from);
    auto cause = builder.getStringAttr(graph.tensors[t].name);
    Value to = builder.create<ir::ReshardOp>(from.getLoc(), from.getType(),
                                             from, attr(conversion.from),
                                             attr(conversion.to), cause);
    versions.push_back({t, conversion.phase, conversion.to, to});
  }

  // Sets the insertion point right after `from` or, if `from` belongs to the
  // other phase, right before the tensor's first reader in this phase.
  void place(OpBuilder &builder, int t, planner::Phase phase, Value from) {
    Block *block = phase == planner::Phase::forward
                       ? &segment.getBlock()
                       : &segment.getBackward().getBlock();
    Operation *definition = from.getDefiningOp();
    if (from.getParentBlock() != block) {
      builder.setInsertionPoint(firstReader(t, block));
    } else if (definition) {
      builder.setInsertionPointAfter(definition);
    } else {
      builder.setInsertionPointToStart(block);
    }
  }

  Operation *firstReader(int t, Block *block) {
    Operation *first = block->getTerminator();
    for (Operation *user : values[t].getUsers())
      if (user->getBlock() == block && user->isBeforeInBlock(first))
        first = user;
    return first;
  }

  planner::Phase phaseOf(Operation *op) {
    return op->getBlock() == &segment.getBlock() ? planner::Phase::forward
                                                 : planner::Phase::backward;
  }

  void writeOp(ir::ComputeOp op, int index) {
    const planner::Op &plain = graph.ops[index];
    op->setAttr(ir::kStrategyAttrName,
                toAttr(context, plan.strategies[index], plain, mesh));
    for (auto [i, use] : llvm::enumerate(plain.operands)) {
      planner::Layout layout =
          planner::wanted(graph, plan, index, static_cast<int>(i));
      OpOperand &operand = op->getOpOperand(i);
      if (graph.tensors[use.tensor].kind == planner::TensorKind::input)
        operand.set(inputIn(use.tensor, layout, op));
      else
        read(operand, use.tensor, layout);
    }
  }

  void read(OpOperand &operand, int tensor, const planner::Layout &layout) {
    Value value = find(tensor, phaseOf(operand.getOwner()), layout);
    assert(value && "every layout read has been made");
    operand.set(value);
  }

  // Returns the input `tensor` in `layout`. A rank can load any shard. For a
  // partial layout, a reshard keeps the value on only one rank of the axis.
  Value inputIn(int tensor, const planner::Layout &layout, Operation *reader) {
    planner::Phase phase = phaseOf(reader);
    if (Value value = find(tensor, phase, layout))
      return value;
    OpBuilder builder(reader);
    Value value;
    if (layout.partial.empty()) {
      auto input = llvm::cast<ir::InputOp>(
          builder.clone(*values[tensor].getDefiningOp()));
      input.setLayoutAttr(attr(layout));
      input->moveBefore(reader->getBlock(), reader->getBlock()->begin());
      value = input.getValue();
    } else {
      planner::Layout loaded = planner::Layout::replicated(layout.dims.size());
      loaded.dims = layout.dims;
      Value from = inputIn(tensor, loaded, reader);
      builder.setInsertionPointAfter(from.getDefiningOp());
      value = builder.create<ir::ReshardOp>(
          from.getLoc(), from.getType(), from, attr(loaded), attr(layout),
          builder.getStringAttr(graph.tensors[tensor].name));
    }
    versions.push_back({tensor, phase, layout, value});
    return value;
  }

  void writeBoundary() {
    segment.setLayoutsAttr(attrs(plan.carriedIn));
    writeYield(segment.getYield(), graph.carriedOut, plan.carriedOut);
    if (ir::BackwardOp backward = segment.getBackward()) {
      backward.setLayoutsAttr(attrs(plan.gradientIn));
      writeYield(backward.getYield(), graph.gradientOut, plan.gradientOut);
    }
  }

  void writeYield(ir::YieldOp yield, const std::vector<int> &tensors,
                  const std::vector<planner::Layout> &layouts) {
    yield.setLayoutsAttr(attrs(layouts));
    for (std::size_t i = 0; i < tensors.size(); ++i)
      read(yield->getOpOperand(i), tensors[i], layouts[i]);
  }

  void writeAccumulations() {
    for (std::size_t t = 0; t < values.size(); ++t)
      if (auto parameter = values[t].getDefiningOp<ir::ParameterOp>())
        parameter.setLayoutAttr(attr(*plan.made[t]));
    segment.walk([&](ir::AccumulateOp op) {
      int tensor = indexOf(op.getValue());
      planner::Layout layout = *plan.made[tensor];
      for (const planner::Accumulation &accumulation : graph.accumulations)
        if (accumulation.tensor == tensor)
          layout = planner::accumulatorLayout(
              *plan.parameters[accumulation.parameter], mesh);
      op.setLayoutAttr(attr(layout));
      read(op->getOpOperand(0), tensor, layout);
    });
  }

  int indexOf(Value value) {
    while (auto reshard = value.getDefiningOp<ir::ReshardOp>())
      value = reshard.getInput();
    return indices.lookup(value);
  }

  ir::SegmentOp segment;
  const planner::SegmentGraph &graph;
  const planner::SegmentPlan &plan;
  const planner::Mesh &mesh;
  MLIRContext *context;
  SmallVector<Value> values;
  llvm::DenseMap<Value, int> indices;
  SmallVector<ir::ComputeOp> ops;
  SmallVector<ir::InputOp> inputs;
  std::vector<Version> versions;
};

} // namespace

void applyPlan(ModuleOp module, const planner::ModelGraph &graph,
               const std::vector<planner::SegmentPlan> &plans,
               const planner::Mesh &mesh) {
  SmallVector<ir::SegmentOp> segments(module.getOps<ir::SegmentOp>());
  std::size_t next = 0;
  for (auto [index, segment] : llvm::enumerate(segments)) {
    SmallVector<int> cuts;
    for (++next;
         next < plans.size() && plans[next].segment == static_cast<int>(index);
         ++next)
      cuts.push_back(plans[next].first);
    splitSegment(segment, cuts);
  }
  for (auto [segment, plan] :
       llvm::zip_equal(module.getOps<ir::SegmentOp>(), plans))
    SegmentWriter(segment, graph, plan, mesh).write();
  for (auto update : module.getOps<ir::UpdateOp>())
    writeUpdate(update, graph, plans, mesh);
  module->setAttr(ir::kMeshAttrName, toAttr(module.getContext(), mesh));
}

} // namespace mtplan::passes
