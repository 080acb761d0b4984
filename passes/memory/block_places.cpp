//===- block_places.cpp - Memory of weights gathered ahead ----------------===//

#include "passes/memory/block_places.h"

#include <algorithm>

#include "ir/decisions.h"
#include "passes/memory/offsets.h"

using namespace mlir;

namespace mtplan::passes {

namespace {

/// Describes the weights that are gathered ahead for each run of a program.
/// `firstRun` is the number of the program's first run in the task.
struct GatheredBlock {
  SmallVector<Value> values;
  int64_t bytes = 0, firstRun = 0, runs = 1;
};

} // namespace

BlockRegion blockRegionOf(ArrayRef<BlockProgram> programs, bool ascends,
                          llvm::function_ref<int64_t(Value)> sizeOf) {
  std::vector<GatheredBlock> blocks;
  int64_t runs = 0;
  for (const BlockProgram &program : programs) {
    GatheredBlock &block = blocks.emplace_back();
    for (auto gather : program.block->getOps<ir::AllGatherOp>())
      if (ir::isAhead(gather)) {
        block.values.push_back(gather.getResult());
        block.bytes += roundedUp(sizeOf(gather.getResult()), kAlignment);
      }
    block.firstRun = runs;
    block.runs = program.runs;
    runs += program.runs;
  }
  BlockRegion region;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const int64_t own = blocks[i].bytes;
    region.bytes = std::max(region.bytes, blocks[i].runs > 1 ? 2 * own : own);
    if (i + 1 < blocks.size())
      region.bytes = std::max(region.bytes, own + blocks[i + 1].bytes);
  }
  const auto startOf = [&](const GatheredBlock &block, int64_t run) {
    return run % 2 == 0 ? 0 : region.bytes - block.bytes;
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const GatheredBlock &block = blocks[i];
    std::vector<BlockRange> &inUse = region.inUse.emplace_back();
    const bool repeats = block.runs > 1;
    int64_t offset = repeats ? 0 : startOf(block, block.firstRun);
    for (Value value : block.values) {
      BlockPlace &place = region.places.emplace_back();
      place.value = value;
      place.array.offset = offset;
      place.array.size = sizeOf(value);
      if (repeats) {
        place.array.entries = 2;
        place.array.stride = startOf(block, 1);
        // The entry is the parity of the run.
        place.entry = (block.firstRun + (ascends ? 0 : block.runs - 1)) % 2;
        place.step = 1;
      } else {
        inUse.push_back({value, offset, place.array.size});
      }
      offset += roundedUp(place.array.size, kAlignment);
    }
    for (int64_t parity = 0; repeats && parity < 2; ++parity)
      inUse.push_back({Value(), startOf(block, parity), block.bytes});
    if (i + 1 < blocks.size())
      inUse.push_back({Value(), startOf(blocks[i + 1], blocks[i + 1].firstRun),
                       blocks[i + 1].bytes});
    llvm::erase_if(inUse,
                   [](const BlockRange &range) { return range.bytes == 0; });
  }
  return region;
}

} // namespace mtplan::passes
