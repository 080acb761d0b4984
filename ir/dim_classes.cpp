//===- dim_classes.cpp - Equivalence classes of dimensions ----------------===//

#include "ir/dim_classes.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace mtplan::ir {

DimClasses::DimClasses(ModuleOp module) {
  visit(module);
  visitBoundaries(module);
  uniteProducts();
  number();
}

int DimClasses::node(Value value, unsigned dim) {
  auto [entry, isNew] =
      valueNodes.try_emplace(value, static_cast<int>(parents.size()));
  if (isNew)
    for (int64_t size : shapeOf(value)) {
      parents.push_back(static_cast<int>(parents.size()));
      facts.push_back({});
      facts.back().size = size;
    }
  return entry->second + static_cast<int>(dim);
}

int DimClasses::find(int node) const {
  while (parents[node] != node)
    node = parents[node];
  return node;
}

// Makes the smaller node the root, so that classes are in program order.
void DimClasses::unite(int a, int b) {
  a = find(a);
  b = find(b);
  parents[std::max(a, b)] = std::min(a, b);
}

void DimClasses::uniteValues(Value a, Value b) {
  for (unsigned d = 0; d < shapeOf(a).size() && d < shapeOf(b).size(); ++d)
    unite(node(a, d), node(b, d));
}

void DimClasses::visit(ModuleOp module) {
  auto label = [&](StringRef name, Value value) {
    auto [entry, isNew] = labelled.try_emplace(name, value);
    if (!isNew)
      uniteValues(entry->second, value);
  };
  module.walk([&](Operation *op) {
    if (auto compute = llvm::dyn_cast<ComputeOp>(op)) {
      visitCompute(compute);
    } else if (auto parameter = llvm::dyn_cast<ParameterOp>(op)) {
      label(parameter.getLabel(), parameter.getValue());
      // ZeRO may shard any dimension of a parameter.
      for (unsigned d = 0; d < shapeOf(parameter.getValue()).size(); ++d)
        facts[node(parameter.getValue(), d)].splittable = true;
    } else if (auto accumulate = llvm::dyn_cast<AccumulateOp>(op)) {
      label(accumulate.getLabel(), accumulate.getValue());
    } else if (auto accumulated = llvm::dyn_cast<AccumulatedOp>(op)) {
      label(accumulated.getLabel(), accumulated.getValue());
    } else if (auto adamw = llvm::dyn_cast<AdamwOp>(op)) {
      if (adamw.getUpdated())
        uniteValues(adamw.getGradient(), adamw.getUpdated());
    } else if (auto reshard = llvm::dyn_cast<ReshardOp>(op)) {
      uniteValues(reshard.getInput(), reshard.getResult());
    } else if (auto input = llvm::dyn_cast<InputOp>(op)) {
      for (auto [d, role] :
           llvm::enumerate(input.getDims().getAsRange<StringAttr>())) {
        if (d >= shapeOf(input.getValue()).size())
          break;
        DimClass &fact = facts[node(input.getValue(), d)];
        fact.batch |= role.getValue() == "batch";
        fact.sequence |= role.getValue() == "sequence";
      }
    }
  });
}

void DimClasses::visitCompute(ComputeOp op) {
  FactorRule rule = op.getFactorRule();
  int first = static_cast<int>(parents.size());
  factorNodes[op] = first;
  // A norm of heads normalises one head, and not the model dimension.
  bool readsRowsWhole =
      llvm::isa<LayerNormOp, LayerNormGradOp, RmsNormOp, RmsNormGradOp,
                SoftmaxOp, SoftmaxGradOp>(op.getOperation()) &&
      !op->hasAttr("head_dim");
  bool sendsTokens = llvm::isa<MoeDispatchOp>(op.getOperation());
  for (const Factor &factor : rule.factors) {
    parents.push_back(static_cast<int>(parents.size()));
    facts.push_back({});
    facts.back().size = factor.size;
    facts.back().whole = readsRowsWhole && !factor.divisible;
    facts.back().experts = factor.role == FactorRole::expert;
    facts.back().places = sendsTokens && factor.name == "c";
  }
  // Head dimensions of equal width are one class in all operators.
  if (auto width = op->getAttrOfType<IntegerAttr>("head_dim")) {
    int d = first + rule.find("d");
    auto [entry, isNew] = headDims.try_emplace(width.getInt(), d);
    if (!isNew)
      unite(entry->second, d);
  }
  // Dimensions of this operator that consist of the same factors are one class.
  SmallVector<std::pair<DimFactors, int>> joint;
  auto connect = [&](Value value, const TensorFactors &dims) {
    for (auto [d, factors] : llvm::enumerate(dims)) {
      int dim = node(value, d);
      if (factors.size() == 1)
        unite(dim, first + factors.front());
      if (factors.size() > 1) {
        for (const auto &[others, other] : joint)
          if (others == factors)
            unite(dim, other);
        joint.emplace_back(factors, dim);
        std::vector<int> parts;
        for (int factor : factors)
          parts.push_back(first + factor);
        products.emplace_back(dim, std::move(parts));
      }
      if (!factors.empty() && rule.factors[factors.front()].divisible)
        facts[dim].splittable = facts[first + factors.front()].splittable =
            true;
    }
  };
  for (auto [value, dims] : llvm::zip_equal(op->getOperands(), rule.operands))
    connect(value, dims);
  for (auto [value, dims] : llvm::zip_equal(op->getResults(), rule.results))
    connect(value, dims);
}

void DimClasses::visitBoundaries(ModuleOp module) {
  auto uniteAll = [&](ValueRange one, ValueRange other) {
    for (auto [a, b] : llvm::zip(one, other))
      uniteValues(a, b);
  };
  SegmentOp previous;
  for (auto segment : module.getOps<SegmentOp>()) {
    ValueRange arguments = segment.getBlock().getArguments();
    ValueRange yielded = segment.getYield().getValues();
    if (previous)
      uniteAll(previous.getYield().getValues(), arguments);
    if (segment.getRepeat() > 1)
      uniteAll(yielded, arguments);
    if (BackwardOp backward = segment.getBackward()) {
      uniteAll(yielded, backward.getBlock().getArguments());
      uniteAll(arguments, backward.getYield().getValues());
    }
    previous = segment;
  }
}

// If operators decompose a dimension into the same number of factors, unites
// these factors one by one. For example, the keys are (heads, width) in RoPE
// and (groups, width) in attention.
void DimClasses::uniteProducts() {
  std::map<std::pair<int, std::size_t>, const std::vector<int> *> first;
  for (const auto &[dim, parts] : products) {
    auto [entry, isNew] = first.try_emplace({find(dim), parts.size()}, &parts);
    if (!isNew)
      for (auto [a, b] : llvm::zip_equal(*entry->second, parts))
        unite(a, b);
  }
}

void DimClasses::number() {
  numbers.assign(parents.size(), -1);
  for (int i = 0; i < static_cast<int>(parents.size()); ++i) {
    int root = find(i);
    if (numbers[root] < 0) {
      numbers[root] = static_cast<int>(classes.size());
      classes.push_back({});
      classes.back().size = facts[root].size;
    }
    numbers[i] = numbers[root];
    DimClass &merged = classes[numbers[i]];
    merged.batch |= facts[i].batch;
    merged.sequence |= facts[i].sequence;
    merged.whole |= facts[i].whole;
    merged.experts |= facts[i].experts;
    merged.places |= facts[i].places;
    merged.splittable |= facts[i].splittable;
  }
  // The finest decomposition of a dimension is kept: attention's (groups,
  // queries, width) rather than RoPE's (heads, width).
  std::ranges::stable_sort(products, [](const auto &a, const auto &b) {
    return a.second.size() > b.second.size();
  });
  for (const auto &[dim, parts] : products) {
    std::vector<int> &product = classes[numbers[dim]].product;
    if (product.empty())
      for (int part : parts)
        product.push_back(numbers[part]);
  }
}

int DimClasses::indexOf(Value value, unsigned dim) const {
  auto entry = valueNodes.find(value);
  assert(entry != valueNodes.end() && "a value no operator touches");
  return numbers[entry->second + static_cast<int>(dim)];
}

const DimClass &DimClasses::of(Value value, unsigned dim) const {
  return classes[indexOf(value, dim)];
}

int DimClasses::indexOf(Operation *op, int factor) const {
  return numbers[factorNodes.lookup(op) + factor];
}

} // namespace mtplan::ir
