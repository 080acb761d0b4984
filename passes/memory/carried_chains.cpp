//===- carried_chains.cpp - Values carried from layer to layer ------------===//

#include "passes/memory/carried_chains.h"

#include "passes/schedule/stage_contents.h"

using namespace mlir;

namespace mtplan::passes {

bool isSaved(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto backward = user->getParentOfType<ir::BackwardOp>();
    return backward &&
           !backward->isAncestor(value.getParentBlock()->getParentOp());
  });
}

static LogicalResult verifySeparate(ir::YieldOp yield) {
  for (OpOperand &carried : yield->getOpOperands())
    if (!isSeparate(carried))
      return yield.emitOpError("carries value ")
             << carried.getOperandNumber()
             << " on, which would have to be in two places";
  return success();
}

// Returns the link of an argument that receives the value `yielded` by the
// neighbouring segment.
// \param before  links of the neighbour's own arguments
CarriedChains::Link CarriedChains::linkTo(Value yielded, std::size_t position,
                                          const std::vector<Link> &before,
                                          int64_t repeat, Block &block,
                                          Type type) {
  if (yielded) {
    auto argument = llvm::dyn_cast<BlockArgument>(yielded);
    if (argument && argument.getOwner() == &block)
      return before[position];
    if (repeat > 1) {
      Link next = before[position];
      next.entry += repeat;
      return next;
    }
  }
  chains.push_back({type});
  return {chains.size() - 1, 0, 0};
}

LogicalResult CarriedChains::followForward(ArrayRef<ir::SegmentOp> chunk) {
  std::vector<Link> before;
  for (std::size_t j = 0; j < chunk.size(); ++j) {
    ir::SegmentOp segment = chunk[j];
    Block &block = segment.getBlock();
    auto repeat = static_cast<int64_t>(segment.getRepeat());
    ir::SegmentOp previous = j > 0 ? chunk[j - 1] : nullptr;
    if (failed(verifySeparate(segment.getYield())))
      return failure();
    std::vector<Link> own;
    for (BlockArgument argument : block.getArguments()) {
      std::size_t i = argument.getArgNumber();
      Value yielded = previous && i < previous.getYield().getNumOperands()
                          ? previous.getYield().getOperand(i)
                          : Value();
      Link link =
          linkTo(yielded, i, before,
                 previous ? static_cast<int64_t>(previous.getRepeat()) : 1,
                 previous ? previous.getBlock() : block, argument.getType());
      bool stays = i < segment.getYield().getNumOperands() &&
                   segment.getYield().getOperand(i) == argument;
      link.step = repeat > 1 && !stays ? 1 : 0;
      Chain &chain = chains[link.chain];
      chain.entries =
          std::max(chain.entries, link.entry + (link.step > 0 ? repeat : 1));
      chain.saved |= isSaved(argument);
      links[argument] = link;
      own.push_back(link);
      // The yielded value is written to the entry from which the argument is
      // read.
      if (yielded && !llvm::isa<BlockArgument>(yielded)) {
        Link made = link;
        if (previous.getRepeat() > 1) {
          made = before[i];
          made.entry += 1;
          made.step = 1;
        } else {
          made.step = 0;
        }
        links[yielded] = made;
        chain.saved |= isSaved(yielded);
      }
    }
    before = std::move(own);
  }
  if (!chunk.empty())
    linkLayersOfLast(
        ir::SegmentOp(chunk.back()).getYield(), before,
        static_cast<int64_t>(ir::SegmentOp(chunk.back()).getRepeat()), 1);
  return success();
}

// Sets the links of the values that each layer of the last segment yields to
// the next layer.
void CarriedChains::linkLayersOfLast(ir::YieldOp yield,
                                     const std::vector<Link> &before,
                                     int64_t repeat, int64_t step) {
  for (std::size_t i = 0; repeat > 1 && i < yield.getNumOperands(); ++i) {
    Value yielded = yield.getOperand(i);
    if (llvm::isa<BlockArgument>(yielded))
      continue;
    Chain &chain = chains[before[i].chain];
    chain.entries = std::max(chain.entries, before[i].entry + repeat + 1);
    chain.saved |= isSaved(yielded);
    links[yielded] = {before[i].chain,
                      before[i].entry + (step > 0 ? 1 : repeat), step};
  }
}

// The last layer runs first in backward, so entries ascend while the numbers of
// layers descend.
LogicalResult CarriedChains::followBackward(ArrayRef<ir::SegmentOp> chunk) {
  // Holds the links of the arguments of `previous`, for the layer of `previous`
  // that runs first.
  std::vector<Link> before;
  ir::SegmentOp previous;
  for (ir::SegmentOp segment : llvm::reverse(chunk)) {
    ir::BackwardOp backward = segment.getBackward();
    if (!backward)
      return success();
    Block &block = backward.getBlock();
    auto repeat = static_cast<int64_t>(segment.getRepeat());
    if (failed(verifySeparate(backward.getYield())))
      return failure();
    std::vector<Link> own;
    for (BlockArgument argument : block.getArguments()) {
      std::size_t i = argument.getArgNumber();
      ir::BackwardOp giver = previous ? previous.getBackward() : nullptr;
      Value yielded = giver && i < giver.getYield().getNumOperands()
                          ? giver.getYield().getOperand(i)
                          : Value();
      Link link =
          linkTo(yielded, i, before,
                 previous ? static_cast<int64_t>(previous.getRepeat()) : 1,
                 giver ? giver.getBlock() : block, argument.getType());
      bool stays = i < backward.getYield().getNumOperands() &&
                   backward.getYield().getOperand(i) == argument;
      bool moves = repeat > 1 && !stays;
      Chain &chain = chains[link.chain];
      chain.entries =
          std::max(chain.entries, link.entry + (moves ? repeat : 1));
      own.push_back(link);
      links[argument] = {link.chain, link.entry + (moves ? repeat - 1 : 0),
                         moves ? -1 : 0};
      if (yielded && !llvm::isa<BlockArgument>(yielded)) {
        auto others = static_cast<int64_t>(previous.getRepeat());
        links[yielded] = others > 1
                             ? Link{link.chain, before[i].entry + others, -1}
                             : Link{link.chain, link.entry, 0};
      }
    }
    before = std::move(own);
    previous = segment;
  }
  if (previous)
    linkLayersOfLast(previous.getBackward().getYield(), before,
                     static_cast<int64_t>(previous.getRepeat()), -1);
  return success();
}

} // namespace mtplan::passes
