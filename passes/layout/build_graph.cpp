//===- build_graph.cpp - Builds the planner's graph of a module -----------===//

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/TypeUtilities.h"

#include "ir/dim_classes.h"
#include "passes/fuse/fusible.h"
#include "passes/layout/bridge.h"
#include "passes/layout/planner_op.h"

using namespace mlir;

namespace mtplan::passes {

namespace {

class GraphBuilder {
public:
  explicit GraphBuilder(ModuleOp m) : module(m), dims(m) {}

  planner::ModelGraph build() {
    graph.name = module.getName().value_or("model").str();
    countUses();
    for (auto op : module.getOps<ir::SegmentOp>())
      addSegment(op);
    planner::shareSegments(graph);
    return std::move(graph);
  }

private:
  // For each parameter without a `*` in its label, counts the segments that
  // read the parameter. A repeated segment counts twice. A parameter that
  // several segments or all repeated layers read is shared and has one layout.
  void countUses() {
    for (auto reader : module.getOps<ir::SegmentOp>()) {
      llvm::StringSet<> here;
      reader.walk([&](ir::ParameterOp op) {
        if (here.insert(op.getLabel()).second && !op.getLabel().contains('*'))
          segmentsThatRead[op.getLabel()] += reader.getRepeat() > 1 ? 2 : 1;
      });
    }
  }

  void addSegment(ir::SegmentOp op) {
    graph.segments.push_back({});
    segment = &graph.segments.back();
    tensors.clear();
    localParameters.clear();
    segment->name = op.getSymName().str();
    segment->repeat = static_cast<int>(op.getRepeat());
    segment->first = static_cast<int>(op.getFirst());
    for (Value argument : op.getBlock().getArguments())
      segment->carriedIn.push_back(
          addTensor(argument, "carried", planner::Phase::forward));
    addBlock(op.getBlock(), planner::Phase::forward);
    for (Value value : op.getYield().getValues())
      segment->carriedOut.push_back(tensors.lookup(value));
  }

  void addBackward(ir::BackwardOp op) {
    for (Value argument : op.getBlock().getArguments())
      segment->gradientIn.push_back(
          addTensor(argument, "carried.grad", planner::Phase::backward));
    addBlock(op.getBlock(), planner::Phase::backward);
    for (Value value : op.getYield().getValues())
      segment->gradientOut.push_back(tensors.lookup(value));
  }

  void addBlock(Block &block, planner::Phase phase) {
    for (Operation &op : block) {
      if (auto parameter = llvm::dyn_cast<ir::ParameterOp>(op)) {
        addParameter(parameter);
      } else if (auto input = llvm::dyn_cast<ir::InputOp>(op)) {
        int t = addTensor(input.getValue(), input.getLabel(), phase);
        segment->tensors[t].kind = planner::TensorKind::input;
        noteSequence(input);
      } else if (auto compute = llvm::dyn_cast<ir::ComputeOp>(op)) {
        addOp(compute, phase);
      } else if (auto accumulate = llvm::dyn_cast<ir::AccumulateOp>(op)) {
        addAccumulation(accumulate);
      } else if (auto backward = llvm::dyn_cast<ir::BackwardOp>(op)) {
        addBackward(backward);
      }
    }
  }

  void noteSequence(ir::InputOp input) {
    auto type = llvm::cast<RankedTensorType>(input.getValue().getType());
    for (auto [d, size] : llvm::enumerate(type.getShape()))
      if (dims.of(input.getValue(), d).sequence)
        graph.sequence = std::max<std::int64_t>(graph.sequence, size);
  }

  int addTensor(Value value, StringRef name, planner::Phase phase) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    planner::Tensor tensor;
    tensor.name = name.str();
    tensor.shape.assign(type.getShape().begin(), type.getShape().end());
    tensor.elementBytes =
        static_cast<int>((type.getElementTypeBitWidth() + 7) / 8);
    tensor.phase = phase;
    for (unsigned d = 0; d < tensor.shape.size(); ++d)
      if (dims.of(value, d).batch)
        tensor.batchDim = static_cast<int>(d);
    int index = static_cast<int>(segment->tensors.size());
    segment->tensors.push_back(std::move(tensor));
    tensors[value] = index;
    return index;
  }

  void addParameter(ir::ParameterOp op) {
    int t = addTensor(op.getValue(), op.getLabel(), planner::Phase::forward);
    planner::Tensor &tensor = segment->tensors[t];
    tensor.kind = planner::TensorKind::parameter;
    std::string key = op.getLabel().str();
    bool shared = segmentsThatRead.lookup(key) > 1;
    auto [entry, isNew] = (shared ? sharedParameters : localParameters)
                              .try_emplace(key, graph.parameters.size());
    tensor.parameter = static_cast<int>(entry->second);
    if (!isNew)
      return;
    planner::Parameter parameter;
    parameter.name = key;
    parameter.shape = tensor.shape;
    parameter.elementBytes = tensor.elementBytes;
    parameter.copies = op.getLabel().contains('*') ? segment->repeat : 1;
    parameter.shared = shared;
    for (unsigned d = 0; d < tensor.shape.size(); ++d)
      parameter.splits.push_back(splitOfParameter(op.getValue(), d));
    graph.parameters.push_back(std::move(parameter));
  }

  // Returns the split of a parameter's dimension. In each reader of the
  // parameter, the dimension belongs to a factor that has a split. The result
  // is `vocab` if a reader has this split, else the first split other than
  // `feature`.
  planner::Split splitOfParameter(Value value, unsigned dim) {
    planner::Split split = planner::Split::feature;
    for (OpOperand &use : value.getUses()) {
      auto compute = llvm::dyn_cast<ir::ComputeOp>(use.getOwner());
      if (!compute)
        continue;
      ir::FactorRule rule = compute.getFactorRule();
      const ir::DimFactors &factors =
          rule.operands[use.getOperandNumber()][dim];
      if (factors.empty())
        continue;
      planner::Split named = splitOfFactor(compute, rule, factors.front());
      if (split == planner::Split::feature || named == planner::Split::vocab)
        split = named;
    }
    return split;
  }

  planner::Split splitOfFactor(ir::ComputeOp op, const ir::FactorRule &rule,
                               int factor) {
    if (rule.factors[factor].role != ir::FactorRole::data)
      return splitOf(rule.factors[factor].role);
    const ir::DimClass &dim = dims.all()[dims.indexOf(op, factor)];
    return dim.batch      ? planner::Split::batch
           : dim.sequence ? planner::Split::sequence
           : dim.experts  ? planner::Split::expert
           : dim.whole    ? planner::Split::hidden
                          : planner::Split::feature;
  }

  void addOp(ir::ComputeOp op, planner::Phase phase) {
    ir::FactorRule rule = op.getFactorRule();
    planner::Op plain = toPlanner(op);
    plain.phase = phase;
    for (std::size_t f = 0; f < plain.factors.size(); ++f) {
      planner::Factor &factor = plain.factors[f];
      factor.split = splitOfFactor(op, rule, static_cast<int>(f));
    }
    for (auto [use, operand] :
         llvm::zip_equal(plain.operands, op->getOperands()))
      use.tensor = tensors.lookup(operand);
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      std::string name = op.getLabel().str();
      if (i > 0)
        (name += '#') += std::to_string(i);
      plain.results[i].tensor = addTensor(result, name, phase);
    }
    plain.fusedOperand = fusedOperandOf(op);
    countModelFlops(op, plain);
    segment->ops.push_back(std::move(plain));
  }

  // Returns the index of the operand whose producer `op` can be fused into, or
  // -1 if there is none. If there are two such operands, the one with the
  // earlier producer is chosen, as in passes/fuse.
  int fusedOperandOf(ir::ComputeOp op) {
    int first = -1;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Operation *maker = operand.getDefiningOp();
      if (maker && fusibleConsumerOf(maker) == op && canFuse(maker, op) &&
          (first < 0 ||
           maker->isBeforeInBlock(op->getOperand(first).getDefiningOp())))
        first = static_cast<int>(i);
    }
    return first;
  }

  // Returns whether `consumer` can be fused into `maker`. All element types
  // must be equal. If `maker` is an einsum, it must be a single matrix product
  // that is neither batched nor contracted over samples.
  bool canFuse(Operation *maker, ir::ComputeOp consumer) {
    const Value result = maker->getResult(0);
    const auto made = llvm::find_if(segment->ops, [&](const planner::Op &one) {
      return one.results.front().tensor == tensors.lookup(result);
    });
    auto type = [](Value value) { return getElementTypeOrSelf(value); };
    auto isSame = [&](Value value) { return type(value) == type(result); };
    auto isOfSamples = [&](int factor) {
      return made->factors[factor].split == planner::Split::batch;
    };
    return (!llvm::isa<ir::EinsumOp>(maker) ||
            (made->opClass == planner::OpClass::gemm && made->batch.empty() &&
             llvm::none_of(made->k, isOfSamples))) &&
           llvm::all_of(consumer->getOperands(), isSame) &&
           llvm::all_of(consumer->getResults(), isSame);
  }

  // Adds the operations that model FLOPs utilization (MFU) counts: the
  // operations of matrix products, and those of attention over all pairs of
  // positions. The count does not depend on operations that a kernel skips or
  // repeats. For attention, backward counts as twice as many operations as
  // forward. The forward operator therefore adds three times its own
  // operations, and the backward operator adds none.
  void countModelFlops(ir::ComputeOp op, const planner::Op &plain) {
    double flops = 0.0;
    if (llvm::isa<ir::EinsumOp>(op.getOperation()))
      flops = plain.flops.value;
    else if (auto attention =
                 llvm::dyn_cast<ir::AttentionOp>(op.getOperation()))
      flops = 3.0 * plain.flops.value * (attention.getCausal() ? 2.0 : 1.0);
    graph.modelFlops.value += flops * segment->repeat;
  }

  void addAccumulation(ir::AccumulateOp op) {
    int tensor = tensors.lookup(op.getValue());
    for (auto *parameters : {&localParameters, &sharedParameters}) {
      auto entry = parameters->find(op.getLabel());
      if (entry != parameters->end()) {
        segment->accumulations.push_back(
            {tensor, static_cast<int>(entry->second)});
        return;
      }
    }
    segment->reported.push_back(tensor);
  }

  ModuleOp module;
  ir::DimClasses dims;
  planner::ModelGraph graph;
  planner::SegmentGraph *segment = nullptr;
  llvm::DenseMap<Value, int> tensors;
  llvm::StringMap<int> segmentsThatRead;
  llvm::StringMap<std::size_t> localParameters, sharedParameters;
};

} // namespace

planner::ModelGraph buildModelGraph(ModuleOp module) {
  return GraphBuilder(module).build();
}

} // namespace mtplan::passes
