//===- chains.cpp - What copies hand on -----------------------------------===//
//
// A segment's copy finds a carried value in one entry of an array and leaves
// the next one in the next entry, so that one program serves all copies. The
// next segment of a chunk goes on where the segment before it ended. A value
// that backward reads keeps an entry for each copy; for other values two
// entries by turns are enough. A value that is carried on unchanged keeps its
// entry.
//
//===----------------------------------------------------------------------===//

#include "passes/memory/stage_places.h"
#include "passes/schedule/carried.h"

using namespace mlir;

namespace mtplan::passes {

static Type elementOf(Type type) {
  return llvm::cast<RankedTensorType>(type).getElementType();
}

static LogicalResult verifySeparate(ir::YieldOp yield) {
  for (OpOperand &carried : yield->getOpOperands())
    if (!isSeparate(carried))
      return yield.emitOpError("carries value ")
             << carried.getOperandNumber()
             << " on, which would have to be in two places";
  return success();
}

// \param before  the links of what the neighbour was handed itself
StagePlaces::Link StagePlaces::linkTo(Value handed, std::size_t position,
                                      const std::vector<Link> &before,
                                      int64_t repeat, Block &block, Type type) {
  if (handed) {
    auto argument = llvm::dyn_cast<BlockArgument>(handed);
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

LogicalResult StagePlaces::followForward(std::vector<ir::SegmentOp> &chunk) {
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
      Value handed = previous && i < previous.getYield().getNumOperands()
                         ? previous.getYield().getOperand(i)
                         : Value();
      Link link =
          linkTo(handed, i, before,
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
      // The value that was made for the argument is in the argument's place.
      if (handed && !llvm::isa<BlockArgument>(handed)) {
        Link made = link;
        if (previous.getRepeat() > 1) {
          made = before[i];
          made.entry += 1;
          made.step = 1;
        } else {
          made.step = 0;
        }
        links[handed] = made;
        chain.saved |= isSaved(handed);
      }
    }
    before = std::move(own);
  }
  if (!chunk.empty())
    handToItself(chunk.back().getYield(), before,
                 static_cast<int64_t>(chunk.back().getRepeat()), 1);
  return success();
}

// Copies of the last segment carry values on to each other, too.
void StagePlaces::handToItself(ir::YieldOp yield,
                               const std::vector<Link> &before, int64_t repeat,
                               int64_t step) {
  for (std::size_t i = 0; repeat > 1 && i < yield.getNumOperands(); ++i) {
    Value handed = yield.getOperand(i);
    if (llvm::isa<BlockArgument>(handed))
      continue;
    Chain &chain = chains[before[i].chain];
    chain.entries = std::max(chain.entries, before[i].entry + repeat + 1);
    chain.saved |= isSaved(handed);
    links[handed] = {before[i].chain, before[i].entry + (step > 0 ? 1 : repeat),
                     step};
  }
}

// Follows the chunk backward. The last copy runs first, so that entries go up
// while the numbers of copies go down.
LogicalResult StagePlaces::followBackward(std::vector<ir::SegmentOp> &chunk) {
  std::vector<Link> before; // of the copy that runs first
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
      Value handed = giver && i < giver.getYield().getNumOperands()
                         ? giver.getYield().getOperand(i)
                         : Value();
      Link link =
          linkTo(handed, i, before,
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
      if (handed && !llvm::isa<BlockArgument>(handed)) {
        auto others = static_cast<int64_t>(previous.getRepeat());
        links[handed] = others > 1
                            ? Link{link.chain, before[i].entry + others, -1}
                            : Link{link.chain, link.entry, 0};
      }
    }
    before = std::move(own);
    previous = segment;
  }
  if (previous)
    handToItself(previous.getBackward().getYield(), before,
                 static_cast<int64_t>(previous.getRepeat()), -1);
  return success();
}

ir::PlaceAttr StagePlaces::placeOf(const Link &link) {
  const Chain &chain = chains[link.chain];
  return placeIn(chain.array, link.entry, link.step, elementOf(chain.type));
}

// While the program of one copy runs, a carried value is alive until its last
// use, or from when it is made. Several copies use the entries by turns, so
// that all entries are alive all the time.
void StagePlaces::keepHanded(Block &block, int64_t start) {
  std::vector<Handed> &handed = handedIn[&block];
  auto keep = [&](Value value) {
    auto found = links.find(value);
    if (found == links.end() || chains[found->second.chain].saved)
      return;
    const Array &array = chains[found->second.chain].array;
    const Link &link = found->second;
    const int64_t entry = roundedUp(array.size, kAlignment);
    if (link.step != 0)
      handed.push_back({Value(), array.offset - start, entry * array.entries});
    else
      handed.push_back(
          {value, array.offset - start + link.entry % array.entries * entry,
           entry});
  };
  llvm::for_each(block.getArguments(), keep);
  llvm::for_each(block.getTerminator()->getOperands(), keep);
}

LogicalResult StagePlaces::placeChains(int64_t chunk) {
  std::vector<ir::SegmentOp> segments;
  for (ir::SegmentOp segment : contents.segments)
    if (static_cast<int64_t>(segment.getChunk().value_or(0)) == chunk)
      segments.push_back(segment);
  for (bool forward : {true, false}) {
    links.clear();
    chains.clear();
    if (failed(forward ? followForward(segments) : followBackward(segments)))
      return failure();
    // A stage runs one chunk in one direction at a time.
    int64_t start = ends["workspace"];
    for (Chain &chain : chains) {
      int64_t size = bytesOf(chain.type, elementOf(chain.type));
      chain.array = chain.saved ? allocate("activations", size, chain.entries,
                                           slotsOf(chunk))
                                : allocate("workspace", size,
                                           std::min<int64_t>(chain.entries, 2));
    }
    ends["workspace"] = start;
    for (auto &[value, link] : links)
      places[value] = placeOf(link);
    for (ir::SegmentOp segment : segments) {
      ir::BackwardOp backward = segment.getBackward();
      if (forward || backward)
        keepHanded(forward ? segment.getBlock() : backward.getBlock(), start);
    }
  }
  return success();
}

} // namespace mtplan::passes
