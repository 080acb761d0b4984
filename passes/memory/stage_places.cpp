//===- stage_places.cpp - Where everything of a stage lies ----------------===//

#include "passes/memory/stage_places.h"

#include "mlir/IR/Builders.h"

#include "ir/decisions.h"
#include "passes/memory/even_products.h"

using namespace mlir;

namespace mtplan::passes {

bool isSaved(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto backward = user->getParentOfType<ir::BackwardOp>();
    return backward &&
           !backward->isAncestor(value.getParentBlock()->getParentOp());
  });
}

int64_t bytesOf(Type type, Type element) {
  return std::max<int64_t>(
             1, llvm::cast<RankedTensorType>(type).getNumElements()) *
         element.getIntOrFloatBitWidth() / 8;
}

// A value that is only reported is as wide as the sum of the reports.
Type StagePlaces::keptAs(Value value) const {
  Type element = llvm::cast<RankedTensorType>(value.getType()).getElementType();
  bool reported = !value.use_empty() &&
                  llvm::all_of(value.getUsers(), [&](Operation *user) {
                    auto sum = llvm::dyn_cast<ir::AccumulateOp>(user);
                    return sum && !trained.count(sum.getLabel().str());
                  });
  return reported ? Float64Type::get(element.getContext()) : element;
}

StagePlaces::Array StagePlaces::allocate(StringRef arena, int64_t size,
                                         int64_t entries, int64_t slots) {
  Array array;
  array.arena = arena;
  array.size = size;
  array.entries = entries;
  array.stride = entries > 1 ? roundedUp(size, kAlignment) : 0;
  array.slots = slots;
  int64_t all = roundedUp(size, kAlignment) * entries;
  array.slotStride = slots > 1 ? all : 0;
  int64_t &end = ends[arena.str()];
  array.offset = end;
  end += all * slots;
  return array;
}

ir::PlaceAttr StagePlaces::placeIn(const Array &array, int64_t entry,
                                   int64_t step, Type element) const {
  return ir::PlaceAttr::get(element.getContext(), array.arena, array.offset,
                            array.size, array.entries, array.stride,
                            array.slots, array.slotStride, entry, step,
                            element);
}

StagePlaces::LabelKey StagePlaces::keyOf(ir::SegmentOp segment,
                                         StringAttr label) const {
  bool ofCopies = label.getValue().contains('*');
  return {ofCopies ? segment.getOperation() : nullptr, label.str()};
}

// Returns the place of the one array that `label` means in `segment`, or in the
// whole stage.
ir::PlaceAttr StagePlaces::placeOfLabel(std::map<LabelKey, Array> &arrays,
                                        StringRef arena, ir::SegmentOp segment,
                                        StringAttr label, Type type,
                                        Type element) {
  LabelKey key = keyOf(segment, label);
  auto copies = key.first ? static_cast<int64_t>(segment.getRepeat()) : 1;
  auto found = arrays.find(key);
  if (found == arrays.end())
    found = arrays.emplace(key, allocate(arena, bytesOf(type, element), copies))
                .first;
  return placeIn(found->second, 0, copies > 1 ? 1 : 0, element);
}

// Reports are rounded to single precision. Their sum in double precision is the
// same in every order of micro-batches.
Type StagePlaces::accumulated(StringRef label, Type element) const {
  if (!trained.count(label.str()))
    return Float64Type::get(element.getContext());
  bool narrow = llvm::isa<FloatType>(element) && wider &&
                element.getIntOrFloatBitWidth() < wider.getIntOrFloatBitWidth();
  return narrow ? wider : element;
}

void StagePlaces::placeLabels(ir::SegmentOp segment) {
  segment.walk([&](ir::ParameterOp op) {
    places[op.getValue()] =
        placeOfLabel(parameters, "parameters", segment, op.getLabelAttr(),
                     op.getType(), keptAs(op.getValue()));
  });
  segment.walk([&](ir::AccumulateOp op) {
    op->setAttr(ir::kPlacesAttrName,
                ArrayAttr::get(op.getContext(), {placeOfSum(segment, op)}));
  });
}

// Returns the bytes behind the sums of all copies where the piece of the last
// copy's gradient goes.
int64_t StagePlaces::bytesBehind(StringAttr label, Type element) const {
  int64_t bytes = 0;
  ir::UpdateOp update = contents.update;
  if (!update)
    return bytes;
  for (auto sum : update.getBody().front().getOps<ir::AccumulatedOp>())
    if (ir::ReduceScatterOp scatter =
            sum.getLabelAttr() == label ? scatterOf(sum) : nullptr)
      bytes = std::max(
          bytes, roundedUp(bytesOf(scatter.getResult().getType(), element),
                           kAlignment));
  return bytes;
}

ir::PlaceAttr StagePlaces::placeOfSum(ir::SegmentOp segment,
                                      ir::AccumulateOp op) {
  const std::string label = op.getLabel().str();
  const bool report = !trained.count(label);
  Type element = accumulated(op.getLabel(), keptAs(op.getValue()));
  Type type = op.getValue().getType();
  if (!op->hasAttr(ir::kOwnSumAttrName)) {
    const bool isNew = !accumulators.count(keyOf(segment, op.getLabelAttr()));
    const ir::PlaceAttr place =
        placeOfLabel(accumulators, report ? "workspace" : "gradients", segment,
                     op.getLabelAttr(), type, element);
    if (isNew && !report)
      ends["gradients"] += bytesBehind(op.getLabelAttr(), element);
    return place;
  }
  auto &others = otherSums[label];
  auto found = llvm::find_if(others, [&](const auto &other) {
    return other.first == segment.getOperation();
  });
  if (found == others.end()) {
    others.emplace_back(segment,
                        allocate("gradients", bytesOf(type, element), 1));
    found = std::prev(others.end());
  }
  return placeIn(found->second, 0, 0, element);
}

// Returns the most consecutive micro-batches for which the stage holds what a
// chunk saves.
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

// Places what backward reads of forward, except for carried values.
void StagePlaces::placeSaved(ir::SegmentOp segment) {
  auto copies = static_cast<int64_t>(segment.getRepeat());
  int64_t slots = slotsOf(static_cast<int64_t>(segment.getChunk().value_or(0)));
  for (Operation &op : segment.getBlock())
    for (Value result : op.getResults())
      if (!places.count(result) && isSaved(result)) {
        Type element = keptAs(result);
        Array array = allocate(
            "activations", bytesOf(result.getType(), element), copies, slots);
        places[result] = placeIn(array, 0, copies > 1 ? 1 : 0, element);
      }
}

// Collects the other values, which are alive between operators of one program.
// Fused operators run at one time. A reduction over ranks works in place if
// nothing else reads its operand.
StagePlaces::Within StagePlaces::livesWithin(Block &block) {
  llvm::DenseMap<Operation *, int64_t> position;
  int64_t instructions = 0;
  for (Operation &op : block)
    position[&op] = ir::isFused(&op) ? instructions - 1 : instructions++;
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
  auto &[roots, lives, rows, sharing] = within;
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
        lives.push_back({here, here, bytesOf(root.getType(), keptAs(root))});
      }
      Lifetime &life = lives[found->second];
      life.last = std::max(life.last, here);
      for (Operation *user : result.getUsers())
        if (auto known = position.find(user); known != position.end())
          life.last = std::max(life.last, known->second);
      if (root != result)
        sharing.emplace_back(result, root);
    }
  const int64_t end = instructions - 1;
  for (const Handed &handed : handedIn[&block]) {
    Lifetime life{0, end, handed.bytes, handed.offset};
    if (handed.value) {
      Operation *maker = handed.value.getDefiningOp();
      life.first = maker ? position.at(maker) : 0;
      life.last = life.first;
      for (Operation *user : handed.value.getUsers())
        if (auto known = position.find(user); known != position.end())
          life.last = std::max(life.last, known->second);
    }
    lives.push_back(life);
  }
  std::set<std::size_t> taken;
  for (const SmallVector<Value> &values : inRows(block)) {
    Row row;
    for (Value value : values)
      if (auto life = lifeOf.find(rootOf(value)); life != lifeOf.end())
        row.push_back(life->second);
    const std::set<std::size_t> apart(row.begin(), row.end());
    if (apart.size() < values.size() || llvm::any_of(row, [&](std::size_t one) {
          return taken.contains(one) ||
                 within.lives[one].bytes != within.lives[row[0]].bytes;
        }))
      continue;
    taken.insert(row.begin(), row.end());
    rows.push_back(row);
  }
  return within;
}

// Lays out as many rows as fit into the room.
Offsets StagePlaces::withRows(const Within &within, int64_t room) {
  std::vector<Row> rows;
  Offsets best = assignOffsets(within.lives, kAlignment);
  for (const Row &row : within.rows) {
    rows.push_back(row);
    Offsets offsets = assignOffsets(within.lives, rows, kAlignment);
    if (offsets.total <= room)
      best = std::move(offsets);
    else
      rows.pop_back();
  }
  return best;
}

void StagePlaces::place(const Within &within, const Offsets &offsets) {
  const std::vector<Lifetime> &lives = within.lives;
  int64_t base = ends["workspace"];
  for (std::size_t i = 0; i < within.roots.size(); ++i) {
    Array array;
    array.arena = "workspace";
    array.offset = base + offsets.at[i];
    array.size = lives[i].bytes;
    places[within.roots[i]] = placeIn(array, 0, 0, keptAs(within.roots[i]));
  }
  for (auto [result, root] : within.sharing) {
    // The place is copied first, because the map may move its entries when it
    // grows.
    ir::PlaceAttr shared = places.lookup(root);
    places[result] = shared;
  }
  workspaces.push_back({offsets.total, peakOf(lives, kAlignment)});
}

// Programs use the workspace by turns, so that the one that needs most sets its
// size.
void StagePlaces::placeWithin() {
  std::vector<Within> programs;
  int64_t room = 0;
  auto find = [&](Block &block) {
    programs.push_back(livesWithin(block));
    room =
        std::max(room, assignOffsets(programs.back().lives, kAlignment).total);
  };
  for (ir::SegmentOp segment : contents.segments) {
    find(segment.getBlock());
    if (ir::BackwardOp backward = segment.getBackward())
      find(backward.getBlock());
  }
  for (const Within &within : programs)
    place(within, withRows(within, room));
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
  for (ir::SegmentOp segment : contents.segments)
    segment.walk(
        [&](ir::ParameterOp op) { trained.insert(op.getLabel().str()); });
  std::set<int64_t> chunks;
  for (ir::SegmentOp segment : contents.segments) {
    placeLabels(segment);
    chunks.insert(static_cast<int64_t>(segment.getChunk().value_or(0)));
  }
  for (int64_t chunk : chunks)
    if (failed(placeChains(chunk)))
      return failure();
  for (ir::SegmentOp segment : contents.segments)
    placeSaved(segment);
  placeWithin();
  if (failed(placeUpdate()))
    return failure();
  write();
  return success();
}

} // namespace mtplan::passes
