//===- stage_places.cpp - Memory of a pipeline stage ----------------------===//

#include "passes/memory/stage_places.h"

#include "ir/decisions.h"
#include "passes/memory/batch_places.h"
#include "passes/memory/block_places.h"
#include "passes/memory/update_places.h"
#include "passes/schedule/stages.h"

using namespace mlir;

namespace mtplan::passes {

static Type elementOf(Type type) {
  return llvm::cast<RankedTensorType>(type).getElementType();
}

// Returns the number of slots for the activations of `chunk`: the largest
// number of micro-batches from the oldest to the newest in flight, both
// included.
int64_t StagePlaces::slotsOf(int64_t chunk) const {
  int64_t most = 1;
  std::set<int64_t> live;
  for (const ir::StageTask &task : contents.tasks) {
    if (task.chunk != chunk)
      continue;
    if (task.phase == ir::Phase::forward)
      live.insert(task.microBatch);
    else
      live.erase(task.microBatch);
    if (!live.empty())
      most = std::max(most, *live.rbegin() - *live.begin() + 1);
  }
  return most;
}

// Records the ranges of the workspace that carried values occupy in a program.
// A value with a fixed entry is alive from its definition to its last use. If
// layers alternate between entries, all entries are always alive.
void StagePlaces::keepCarried(Block &block, const CarriedChains &carried,
                              const std::vector<Array> &arrays, int64_t start) {
  std::vector<Carried> &kept = carriedIn[&block];
  auto keep = [&](Value value) {
    auto found = carried.links.find(value);
    if (found == carried.links.end() ||
        carried.chains[found->second.chain].saved)
      return;
    const CarriedChains::Link &link = found->second;
    const Array &array = arrays[link.chain];
    const int64_t entry = roundedUp(array.size, kAlignment);
    if (link.step != 0)
      kept.push_back({Value(), array.offset - start, entry * array.entries});
    else
      kept.push_back({value,
                      array.offset - start + link.entry % array.entries * entry,
                      entry});
  };
  llvm::for_each(block.getArguments(), keep);
  llvm::for_each(block.getTerminator()->getOperands(), keep);
}

// Assigns memory to carried values. A stage runs one chunk in one direction at
// a time, so all chunks and directions use the same part of the workspace.
LogicalResult StagePlaces::placeChains(int64_t chunk) {
  SmallVector<ir::SegmentOp> segments;
  for (ir::SegmentOp segment : contents.segments)
    if (static_cast<int64_t>(segment.getChunk().value_or(0)) == chunk)
      segments.push_back(segment);
  for (bool forward : {true, false}) {
    CarriedChains carried;
    if (failed(forward ? carried.followForward(segments)
                       : carried.followBackward(segments)))
      return failure();
    const int64_t start = arenas.end("workspace");
    std::vector<Array> arrays;
    for (const CarriedChains::Chain &chain : carried.chains) {
      int64_t size = bytesOf(chain.type, elementOf(chain.type));
      arrays.push_back(
          chain.saved ? arenas.allocate("activations", size, chain.entries,
                                        slotsOf(chunk))
                      : arenas.allocate("workspace", size,
                                        std::min<int64_t>(chain.entries, 2)));
    }
    placeBlocks(segments, forward, start);
    arenas.end("workspace") = start;
    for (auto &[value, link] : carried.links)
      places[value] = placeIn(arrays[link.chain], link.entry, link.step,
                              elementOf(carried.chains[link.chain].type));
    for (ir::SegmentOp segment : segments) {
      ir::BackwardOp backward = segment.getBackward();
      if (forward || backward)
        keepCarried(forward ? segment.getBlock() : backward.getBlock(), carried,
                    arrays, start);
    }
  }
  return success();
}

// Assigns memory to the weights that are gathered ahead in a chunk, behind the
// carried values of the chunk.
// \param start  the beginning of the memory that programs reuse
void StagePlaces::placeBlocks(ArrayRef<ir::SegmentOp> segments, bool forward,
                              int64_t start) {
  std::vector<BlockProgram> programs;
  const auto add = [&](ir::SegmentOp segment) {
    ir::BackwardOp backward = segment.getBackward();
    if (forward || backward)
      programs.push_back({forward ? &segment.getBlock() : &backward.getBlock(),
                          static_cast<int64_t>(segment.getRepeat())});
  };
  if (forward)
    llvm::for_each(segments, add);
  else
    llvm::for_each(llvm::reverse(segments), add);
  const BlockRegion region = blockRegionOf(programs, forward, [&](Value value) {
    return bytesOf(value.getType(), labels.keptAs(value));
  });
  const int64_t base = arenas.end("workspace");
  for (BlockPlace place : region.places) {
    place.array.arena = "workspace";
    place.array.offset += base;
    places[place.value] = placeIn(place.array, place.entry, place.step,
                                  labels.keptAs(place.value));
  }
  for (auto [program, inUse] : llvm::zip_equal(programs, region.inUse))
    for (const BlockRange &range : inUse)
      carriedIn[program.block].push_back(
          {range.value, base - start + range.offset, range.bytes});
}

// Assigns memory to forward values that backward reads, except for carried
// values.
void StagePlaces::placeSaved(ir::SegmentOp segment) {
  auto copies = static_cast<int64_t>(segment.getRepeat());
  int64_t slots = slotsOf(static_cast<int64_t>(segment.getChunk().value_or(0)));
  for (Operation &op : segment.getBlock())
    for (Value result : op.getResults())
      if (!places.count(result) && isSaved(result)) {
        Type element = labels.keptAs(result);
        Array array = arenas.allocate(
            "activations", bytesOf(result.getType(), element), copies, slots);
        places[result] = placeIn(array, 0, copies > 1 ? 1 : 0, element);
      }
}

static bool isGrouped(Operation *op) {
  return axisOf(op) && ir::batchOf(op) >= 0;
}

// Returns the live ranges of the values that still have no memory, counted in
// instructions of one program. Fused operators count as one instruction, and so
// do grouped collectives. An all-reduce works in place if nothing else reads
// its operand. Also returns rows, which are sets of values that need adjacent
// offsets because batched products read or write them. A batch is rejected if
// its values cannot form a row.
StagePlaces::Within StagePlaces::livesWithin(Block &block) {
  llvm::DenseMap<Operation *, int64_t> position;
  int64_t instructions = 0;
  // Holds the launch number of the previous instruction if it is a grouped
  // collective, else -1.
  int64_t launch = -1;
  for (Operation &op : block) {
    if (!isInstruction(&op)) {
      position[&op] = instructions;
      continue;
    }
    const bool isInGroup = isGrouped(&op);
    const bool joins =
        ir::isFused(&op) || (isInGroup && ir::batchOf(&op) == launch);
    position[&op] = joins ? instructions - 1 : instructions++;
    launch = isInGroup ? ir::batchOf(&op) : -1;
  }
  auto rootOf = [&](Value value) {
    while (auto sum = value.getDefiningOp<ir::AllReduceOp>()) {
      Value input = sum.getInput();
      if (places.count(value) || places.count(input) || !input.hasOneUse() ||
          input.getParentBlock() != &block)
        break;
      value = input;
    }
    return value;
  };
  Within within;
  auto &roots = within.roots;
  auto &lives = within.lives;
  llvm::DenseMap<Value, std::size_t> lifeOf;
  for (Operation &op : block)
    for (Value result : op.getResults()) {
      if (places.count(result))
        continue;
      Value root = rootOf(result);
      auto [found, isNew] = lifeOf.try_emplace(root, lives.size());
      int64_t here = position[&op];
      if (isNew) {
        roots.push_back(root);
        lives.push_back(
            {here, here, bytesOf(root.getType(), labels.keptAs(root))});
      }
      Lifetime &life = lives[found->second];
      life.last = std::max(life.last, here);
      for (Operation *user : result.getUsers())
        if (auto known = position.find(user); known != position.end())
          life.last = std::max(life.last, known->second);
      if (root != result)
        within.sharing.emplace_back(result, root);
    }
  const int64_t end = instructions - 1;
  for (const Carried &carried : carriedIn[&block]) {
    Lifetime life{0, end, carried.bytes, carried.offset};
    if (carried.value) {
      Operation *maker = carried.value.getDefiningOp();
      life.first = maker && !ir::isAhead(maker) ? position.at(maker) : 0;
      life.last = life.first;
      for (Operation *user : carried.value.getUsers())
        if (auto known = position.find(user); known != position.end())
          life.last = std::max(life.last, known->second);
    }
    lives.push_back(life);
  }
  std::set<std::size_t> taken;
  for (const BatchRow &wanted : batchRows(block)) {
    Row row;
    for (Value value : wanted.values)
      if (auto life = lifeOf.find(rootOf(value)); life != lifeOf.end())
        row.push_back(life->second);
    // Values of the row that outlive the program have fixed offsets and are not
    // in `row`. A batch cannot write a carried result, because other values
    // may still use the memory of the result when the batch runs.
    const bool writesCarried =
        wanted.areResults && llvm::any_of(wanted.values, [&](Value value) {
          auto place = places.find(value);
          return place != places.end() &&
                 place->second.getArena() == "workspace";
        });
    if (row.size() < 2 && !writesCarried)
      continue; // no two values need adjacent offsets
    const std::set<std::size_t> apart(row.begin(), row.end());
    if (writesCarried || apart.size() < row.size() ||
        llvm::any_of(row, [&](std::size_t one) {
          return taken.contains(one) || lives[one].bytes != lives[row[0]].bytes;
        })) {
      within.rejected.insert(wanted.batch);
      continue;
    }
    taken.insert(row.begin(), row.end());
    within.rows.push_back(row);
    within.batchesOfRows.push_back(wanted.batch);
  }
  return within;
}

// Assigns offsets so that the values of each row of `within` are adjacent. If
// the total would exceed `limit` bytes with a row, that row is dropped and its
// batch rejected.
Offsets StagePlaces::withRows(Within &within, int64_t limit) {
  std::vector<Row> rows;
  Offsets best = assignOffsets(within.lives, kAlignment);
  for (auto [row, batch] : llvm::zip_equal(within.rows, within.batchesOfRows)) {
    rows.push_back(row);
    Offsets offsets = assignOffsets(within.lives, rows, kAlignment);
    if (offsets.total <= limit) {
      best = std::move(offsets);
    } else {
      rows.pop_back();
      within.rejected.insert(batch);
    }
  }
  return best;
}

void StagePlaces::place(const Within &within, const Offsets &offsets) {
  const std::vector<Lifetime> &lives = within.lives;
  int64_t base = arenas.end("workspace");
  for (std::size_t i = 0; i < within.roots.size(); ++i) {
    Array array;
    array.arena = "workspace";
    array.offset = base + offsets.at[i];
    array.size = lives[i].bytes;
    places[within.roots[i]] =
        placeIn(array, 0, 0, labels.keptAs(within.roots[i]));
  }
  for (auto [result, root] : within.sharing) {
    // The attribute is copied first, because the map may move its entries when
    // it grows.
    ir::PlaceAttr shared = places.lookup(root);
    places[result] = shared;
  }
  workspaces.push_back({offsets.total, peakOf(lives, kAlignment)});
}

// Assigns memory to the values that live within one program. Programs run one
// after another, so the size of the workspace is the largest number of bytes
// that a program needs.
void StagePlaces::placeWithin() {
  SmallVector<Block *> blocks;
  for (ir::SegmentOp segment : contents.segments) {
    blocks.push_back(&segment.getBlock());
    if (ir::BackwardOp backward = segment.getBackward())
      blocks.push_back(&backward.getBlock());
  }
  const auto needOf = [&](Block &block) {
    return assignOffsets(livesWithin(block).lives, kAlignment).total;
  };
  // `limit` is the size of the workspace, in bytes, if no collectives are
  // grouped except those of blocks, whose memory the planner has counted. If a
  // program with its other groups would exceed `limit`, all these groups are
  // dissolved.
  std::map<Block *, std::map<Operation *, Attribute>> groups;
  int64_t limit = 0;
  for (Block *block : blocks) {
    for (Operation &op : *block)
      if (isGrouped(&op) && !ir::isOfBlock(&op))
        groups[block][&op] = op.removeAttr(ir::kBatchAttrName);
    limit = std::max(limit, needOf(*block));
  }
  for (auto &[block, members] : groups) {
    for (auto &[op, number] : members)
      op->setAttr(ir::kBatchAttrName, number);
    if (needOf(*block) > limit)
      for (auto &[op, number] : members)
        op->removeAttr(ir::kBatchAttrName);
  }
  for (Block *block : blocks) {
    Within within = livesWithin(*block);
    place(within, withRows(within, limit));
    keepEvenBatches(*block, within.rejected,
                    [&](Value value) { return places.lookup(value); });
  }
}

void StagePlaces::write() {
  auto attribute = [&](ValueRange values) {
    SmallVector<Attribute> all;
    for (Value value : values)
      all.push_back(places.lookup(value));
    return ArrayAttr::get(contents.segments.front().getContext(), all);
  };
  auto ofBlock = [&](Operation *owner, Block &block) {
    if (block.getNumArguments() > 0)
      owner->setAttr(ir::kPlacesAttrName, attribute(block.getArguments()));
    for (Operation &op : block)
      if (op.getNumResults() > 0)
        op.setAttr(ir::kPlacesAttrName, attribute(op.getResults()));
  };
  for (ir::SegmentOp segment : contents.segments) {
    ofBlock(segment, segment.getBlock());
    if (ir::BackwardOp backward = segment.getBackward())
      ofBlock(backward, backward.getBlock());
  }
  if (contents.update)
    ofBlock(contents.update, contents.update.getBody().front());
}

LogicalResult StagePlaces::run() {
  if (contents.segments.empty())
    return success();
  std::set<int64_t> chunks;
  for (ir::SegmentOp segment : contents.segments) {
    labels.place(segment, places);
    chunks.insert(static_cast<int64_t>(segment.getChunk().value_or(0)));
  }
  for (int64_t chunk : chunks)
    if (failed(placeChains(chunk)))
      return failure();
  for (ir::SegmentOp segment : contents.segments)
    placeSaved(segment);
  placeWithin();
  int64_t workspaceBytes = 0;
  for (const Fill &fill : workspaces)
    workspaceBytes = std::max(workspaceBytes, fill.used);
  if (contents.update && failed(UpdatePlaces(contents, arenas, labels, places,
                                             workspaceBytes, offloads)
                                    .place()))
    return failure();
  write();
  return success();
}

} // namespace mtplan::passes
