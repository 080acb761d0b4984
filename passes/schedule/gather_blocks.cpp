//===- gather_blocks.cpp - Gathers the weights of a segment at once -------===//

#include <set>

#include "ir/decisions.h"
#include "passes/passes.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

#define GEN_PASS_DEF_GATHERBLOCKSPASS
#include "passes/passes.h.inc"

namespace {

using Operations = SmallVector<Operation *>;

bool isOverReplicas(Operation *op) {
  StringAttr axis = axisOf(op);
  return axis && ir::isReplicaAxis(axis.getValue());
}

ir::ParameterOp gatheredBy(ir::AllGatherOp gather) {
  Value input = gather.getInput();
  while (auto before = input.getDefiningOp<ir::AllGatherOp>())
    input = before.getInput();
  return input.getDefiningOp<ir::ParameterOp>();
}

// Returns the number of marked collectives (mtp.of_block) before `op` in the
// chain that ends in `op`.
int hopOf(Operation *op) {
  Operation *before = op->getOperand(0).getDefiningOp();
  return before && ir::isOfBlock(before) ? 1 + hopOf(before) : 0;
}

// Returns, in program order, a program's gathers of parameters over replicas,
// and the gathers that compute the operands of these gathers.
Operations gathersOf(Block &block) {
  Operations found;
  for (Operation &op : llvm::reverse(block)) {
    auto gather = llvm::dyn_cast<ir::AllGatherOp>(op);
    if (gather && gatheredBy(gather) &&
        (isOverReplicas(gather) ||
         llvm::any_of(gather->getUsers(), [&](Operation *user) {
           return llvm::is_contained(found, user);
         })))
      found.push_back(&op);
  }
  return Operations(llvm::reverse(found));
}

// Returns the end of the chain of collectives from a program's gradient to
// `sum`, beginning with the first reduce-scatter over replicas. Returns nothing
// if the chain has no such reduce-scatter.
Operations scattersBefore(ir::AccumulateOp sum) {
  Operations chain;
  std::size_t kept = 0;
  for (Operation *op = sum.getValue().getDefiningOp();
       llvm::isa_and_present<ir::AllReduceOp, ir::ReduceScatterOp>(op) &&
       op->getBlock() == sum->getBlock() && op->hasOneUse();
       op = op->getOperand(0).getDefiningOp()) {
    chain.push_back(op);
    if (llvm::isa<ir::ReduceScatterOp>(op) && isOverReplicas(op))
      kept = chain.size();
  }
  chain.truncate(kept);
  return Operations(llvm::reverse(chain));
}

// Marks collectives and sorts them by hopOf() and then by axis, so that the
// collectives of a launch are consecutive.
void markByLaunch(Operations &collectives) {
  SmallVector<StringAttr> axes;
  for (Operation *op : collectives) {
    op->setAttr(ir::kOfBlockAttrName, UnitAttr::get(op->getContext()));
    if (!llvm::is_contained(axes, axisOf(op)))
      axes.push_back(axisOf(op));
  }
  llvm::stable_sort(collectives, [&](Operation *one, Operation *other) {
    const auto keyOf = [&](Operation *op) {
      return std::pair(hopOf(op), llvm::find(axes, axisOf(op)));
    };
    return keyOf(one) < keyOf(other);
  });
}

// Moves all gathers to the start of a program, after the parameters that they
// read.
void gatherFirst(Block &block, Operations gathers) {
  markByLaunch(gathers);
  for (Operation *op : llvm::reverse(gathers))
    op->moveBefore(&block, block.begin());
  for (Operation *op : llvm::reverse(gathers))
    if (ir::ParameterOp read = gatheredBy(llvm::cast<ir::AllGatherOp>(op));
        read->getBlock() == &block)
      read->moveBefore(&block, block.begin());
}

// Moves the reduce-scatters of the gradients of `gathered` parameters to the
// end of a program, with the last gradient first. The accumulations follow.
void scatterLast(Block &block, const std::set<StringRef> &gathered) {
  SmallVector<std::pair<Operation *, Operations>> chains; // with producers
  Operations sums;
  for (auto sum : block.getOps<ir::AccumulateOp>()) {
    Operations chain = scattersBefore(sum);
    if (!gathered.contains(sum.getLabel()) || chain.empty())
      continue;
    Operation *maker = chain.front()->getOperand(0).getDefiningOp();
    if (maker && maker->getBlock() == &block)
      maker = ir::fusionHeadOf(maker);
    chains.emplace_back(maker, std::move(chain));
    sums.push_back(sum);
  }
  llvm::stable_sort(chains, [&](const auto &one, const auto &other) {
    const auto isHere = [&](Operation *maker) {
      return maker && maker->getBlock() == &block;
    };
    if (!isHere(one.first) || !isHere(other.first))
      return isHere(one.first) && !isHere(other.first);
    return other.first != one.first && other.first->isBeforeInBlock(one.first);
  });
  Operations collectives;
  for (const auto &[maker, chain] : chains)
    llvm::append_range(collectives, chain);
  markByLaunch(collectives);
  Operation *end = block.getTerminator();
  if (llvm::isa_and_present<ir::BackwardOp>(end->getPrevNode()))
    end = end->getPrevNode();
  for (const Operations &some : {collectives, sums})
    for (Operation *op : some)
      op->moveBefore(end);
}

struct GatherBlocks : impl::GatherBlocksPassBase<GatherBlocks> {
  void runOnOperation() override {
    SmallVector<Block *> programs;
    std::set<StringRef> gathered; // labels
    for (auto segment : getOperation().getOps<ir::SegmentOp>()) {
      programs.push_back(&segment.getBlock());
      if (ir::BackwardOp backward = segment.getBackward())
        programs.push_back(&backward.getBlock());
    }
    for (Block *program : programs) {
      Operations gathers = gathersOf(*program);
      for (Operation *op : gathers)
        gathered.insert(gatheredBy(llvm::cast<ir::AllGatherOp>(op)).getLabel());
      gatherFirst(*program, std::move(gathers));
    }
    for (Block *program : programs)
      scatterLast(*program, gathered);
  }
};

} // namespace

} // namespace mtplan::passes
