//===- planner_op.cpp - Operators in the types of the planner -------------===//

#include "passes/layout/planner_op.h"

#include "llvm/ADT/Twine.h"

using namespace mlir;

namespace mtplan::passes {

planner::Mesh toPlanner(ir::MeshAttr mesh) {
  planner::Mesh plain;
  for (auto [name, size] : llvm::zip_equal(mesh.getNames(), mesh.getSizes()))
    plain.axes.push_back({name.str(), static_cast<int>(size)});
  return plain;
}

ir::MeshAttr toAttr(MLIRContext *context, const planner::Mesh &mesh) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  for (const planner::MeshAxis &axis : mesh.axes) {
    names.push_back(StringAttr::get(context, axis.name));
    sizes.push_back(axis.size);
  }
  return ir::MeshAttr::get(context, names, sizes);
}

std::optional<planner::Layout> toPlanner(ir::LayoutAttr layout,
                                         const planner::Mesh &mesh) {
  planner::Layout plain = planner::Layout::replicated(layout.getDims().size());
  for (auto [d, axes] : llvm::enumerate(layout.getDims()))
    for (auto axis : axes.getAsRange<StringAttr>()) {
      int index = mesh.find(axis.str());
      if (index < 0)
        return std::nullopt;
      plain.dims[d].push_back(index);
    }
  for (StringAttr axis : layout.getPartial()) {
    int index = mesh.find(axis.str());
    if (index < 0)
      return std::nullopt;
    plain.partial.push_back(index);
  }
  if (layout.getMax())
    plain.reduction = planner::Reduction::max;
  return plain;
}

ir::LayoutAttr toAttr(MLIRContext *context, const planner::Layout &layout,
                      const planner::Mesh &mesh) {
  auto nameOf = [&](int axis) {
    return StringAttr::get(context, mesh.axes[axis].name);
  };
  SmallVector<ArrayAttr> dims;
  for (const std::vector<int> &axes : layout.dims) {
    SmallVector<Attribute> names;
    for (int axis : axes)
      names.push_back(nameOf(axis));
    dims.push_back(ArrayAttr::get(context, names));
  }
  SmallVector<StringAttr> partial;
  for (int axis : layout.partial)
    partial.push_back(nameOf(axis));
  bool max = !partial.empty() && layout.reduction == planner::Reduction::max;
  return ir::LayoutAttr::get(context, dims, partial, max);
}

planner::Split splitOf(ir::FactorRole role) {
  switch (role) {
  case ir::FactorRole::data:
    return planner::Split::feature;
  case ir::FactorRole::row:
    return planner::Split::row;
  case ir::FactorRole::column:
    return planner::Split::column;
  case ir::FactorRole::head:
    return planner::Split::head;
  case ir::FactorRole::vocab:
    return planner::Split::vocab;
  case ir::FactorRole::expert:
    return planner::Split::expert;
  }
  llvm_unreachable("all roles are named");
}

// Sorts the factors of a product into batch, m, n and k, according to the
// tensors in which they occur. A product that lacks m, n or k, such as a gate
// times a vector, is priced by its memory traffic.
static void addGemmRoles(planner::Op &op) {
  auto runsAlong = [](const planner::Use &use, int factor) {
    return llvm::is_contained(use.factors, factor);
  };
  for (int f = 0; f < static_cast<int>(op.factors.size()); ++f) {
    bool left = runsAlong(op.operands[0], f);
    bool right = runsAlong(op.operands[1], f);
    bool out = runsAlong(op.results[0], f);
    (left && right && out ? op.batch
     : left && right      ? op.k
     : left               ? op.m
                          : op.n)
        .push_back(f);
  }
}

static std::string variantOf(Operation *op) {
  if (auto activation = llvm::dyn_cast<ir::ActivationOp>(op))
    return ir::stringifyActivation(activation.getKind()).str();
  if (auto gradient = llvm::dyn_cast<ir::ActivationGradOp>(op))
    return ir::stringifyActivation(gradient.getKind()).str();
  auto drops = [](auto attention) {
    return attention && attention.getRate().convertToDouble() > 0.0;
  };
  return drops(llvm::dyn_cast<ir::AttentionOp>(op)) ||
                 drops(llvm::dyn_cast<ir::AttentionGradOp>(op))
             ? planner::kDropout
             : "";
}

static planner::PassKind passOf(ir::CostClass costClass) {
  switch (costClass) {
  case ir::CostClass::traffic:
    return planner::PassKind::traffic;
  case ir::CostClass::layerNorm:
    return planner::PassKind::layerNorm;
  case ir::CostClass::rmsNorm:
    return planner::PassKind::rmsNorm;
  case ir::CostClass::residual:
    return planner::PassKind::residual;
  case ir::CostClass::activation:
    return planner::PassKind::activation;
  case ir::CostClass::gated:
    return planner::PassKind::gated;
  case ir::CostClass::rope:
    return planner::PassKind::rope;
  case ir::CostClass::dropout:
    return planner::PassKind::dropout;
  case ir::CostClass::biasGradient:
    return planner::PassKind::biasGradient;
  case ir::CostClass::logitsRead:
    return planner::PassKind::logitsRead;
  case ir::CostClass::logitsGradient:
    return planner::PassKind::logitsGradient;
  }
  llvm_unreachable("all classes are listed");
}

planner::Op toPlanner(ir::ComputeOp op) {
  ir::FactorRule rule = op.getFactorRule();
  planner::Op plain;
  plain.name = op.getLabel().str();
  plain.kind = op->getName().stripDialect().str();
  plain.variant = variantOf(op);
  plain.pass = passOf(op.getCostClass());
  plain.flops = {op.getFlops()};
  for (const ir::Factor &factor : rule.factors)
    plain.factors.push_back(
        {factor.name, factor.size, splitOf(factor.role), factor.divisible,
         factor.max ? planner::Reduction::max : planner::Reduction::sum,
         factor.skew});
  auto uses = [&](ArrayRef<ir::TensorFactors> tensors,
                  std::vector<planner::Use> &plainUses) {
    for (auto [i, dims] : llvm::enumerate(tensors)) {
      planner::Use use{static_cast<int>(i), {}, false};
      for (const ir::DimFactors &factors : dims)
        use.factors.push_back(factors.empty() ? -1 : factors.front());
      plainUses.push_back(std::move(use));
    }
  };
  uses(rule.operands, plain.operands);
  uses(rule.results, plain.results);
  for (int operand : rule.lookedUp)
    plain.operands[operand].lookedUp = true;
  plain.addends.assign(rule.addends.begin(), rule.addends.end());
  for (const auto &group : rule.linearGroups)
    plain.linearGroups.emplace_back(group.begin(), group.end());
  if (llvm::isa<ir::EinsumOp>(op.getOperation())) {
    addGemmRoles(plain);
    if (!plain.m.empty() && !plain.n.empty() && !plain.k.empty())
      plain.opClass = planner::OpClass::gemm;
    else
      plain.m = plain.n = plain.k = plain.batch = {};
  } else if (llvm::isa<ir::AttentionOp, ir::AttentionGradOp>(
                 op.getOperation())) {
    plain.opClass = planner::OpClass::attention;
  }
  return plain;
}

std::optional<planner::Strategy> toPlanner(ir::StrategyAttr strategy,
                                           const planner::Op &op,
                                           const planner::Mesh &mesh) {
  planner::Strategy plain;
  plain.axes.assign(mesh.axes.size(), planner::kReplicated);
  for (auto [axis, factor] :
       llvm::zip_equal(strategy.getAxes(), strategy.getFactors())) {
    int index = mesh.find(axis.str());
    if (index < 0)
      return std::nullopt;
    int &choice = plain.axes[index];
    StringRef name = factor.getValue();
    unsigned group = 0;
    if (name.consume_front("+")) {
      if (name.getAsInteger(10, group) || group >= op.linearGroups.size())
        return std::nullopt;
      choice = planner::kLinear - static_cast<int>(group);
      continue;
    }
    for (int f = 0; f < static_cast<int>(op.factors.size()); ++f)
      if (op.factors[f].name == name)
        choice = f;
    if (choice == planner::kReplicated)
      return std::nullopt;
  }
  return plain;
}

ir::StrategyAttr toAttr(MLIRContext *context, const planner::Strategy &strategy,
                        const planner::Op &op, const planner::Mesh &mesh) {
  SmallVector<StringAttr> axes, factors;
  for (auto [index, choice] : llvm::enumerate(strategy.axes)) {
    if (choice == planner::kReplicated)
      continue;
    axes.push_back(StringAttr::get(context, mesh.axes[index].name));
    factors.push_back(StringAttr::get(
        context, choice <= planner::kLinear
                     ? ("+" + llvm::Twine(planner::kLinear - choice)).str()
                     : op.factors[choice].name));
  }
  return ir::StrategyAttr::get(context, axes, factors);
}

static std::optional<planner::Layout> fromAttr(ir::LayoutAttr layout,
                                               const planner::Mesh &mesh) {
  return layout ? toPlanner(layout, mesh) : std::nullopt;
}

std::optional<planner::Layout> layoutOf(Value value,
                                        const planner::Mesh &mesh) {
  if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
    auto layouts =
        argument.getOwner()->getParentOp()->getAttrOfType<ArrayAttr>("layouts");
    if (!layouts || argument.getArgNumber() >= layouts.size())
      return std::nullopt;
    return toPlanner(
        llvm::cast<ir::LayoutAttr>(layouts[argument.getArgNumber()]), mesh);
  }
  Operation *op = value.getDefiningOp();
  if (auto reshard = llvm::dyn_cast<ir::ReshardOp>(op))
    return toPlanner(reshard.getTarget(), mesh);
  if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op)) {
    auto attr = op->getAttrOfType<ir::StrategyAttr>(ir::kStrategyAttrName);
    if (!attr)
      return std::nullopt;
    planner::Op plain = toPlanner(compute);
    auto strategy = toPlanner(attr, plain, mesh);
    if (!strategy)
      return std::nullopt;
    int index = static_cast<int>(llvm::cast<OpResult>(value).getResultNumber());
    return planner::resultLayout(plain, *strategy, index);
  }
  return fromAttr(op->getAttrOfType<ir::LayoutAttr>("layout"), mesh);
}

} // namespace mtplan::passes
