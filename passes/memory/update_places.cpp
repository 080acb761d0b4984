//===- update_places.cpp - Memory of an update ----------------------------===//

#include "passes/memory/update_places.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "mlir/IR/Builders.h"

#include "ir/decisions.h"
#include "passes/memory/offsets.h"

using namespace mlir;

namespace mtplan::passes {

// Returns whether a rank's shard in layout `fine` is part of its shard in
// layout `coarse`.
static bool isWithin(ir::LayoutAttr fine, ir::LayoutAttr coarse) {
  return llvm::all_of(
      llvm::zip_equal(fine.getDims(), coarse.getDims()), [](auto dims) {
        ArrayRef<Attribute> all = std::get<0>(dims).getValue();
        ArrayRef<Attribute> first = std::get<1>(dims).getValue();
        return all.take_front(first.size()) == first;
      });
}

Array UpdatePlaces::allocateCopies(StringRef arena, int64_t &end, int64_t size,
                                   const UpdatedCopies &meant) {
  int64_t kept = std::exchange(arenas.end(arena), end);
  Array array = arenas.allocate(arena, size, meant.count);
  end = std::exchange(arenas.end(arena), kept);
  return array;
}

// Returns the PlaceAttr of an array with one entry per layer of `meant`.
// PlaceAttr counts layers from the segment's first layer, and entry 0 belongs
// to the first layer of `meant`.
static ir::PlaceAttr placeCopies(const Array &array, const UpdatedCopies &meant,
                                 Type element) {
  int64_t entry = (meant.count - meant.first % meant.count) % meant.count;
  return placeIn(array, entry, meant.count > 1 ? 1 : 0, element);
}

// Returns the PlaceAttr of an array with one entry per layer of its segment, or
// a single entry.
static ir::PlaceAttr placePerLayer(const Array &array, Type element) {
  return placeIn(array, 0, array.entries > 1 ? 1 : 0, element);
}

// Assigns memory to moments and master weights, in at least single precision.
// An offloaded update also has a host buffer for the copied gradient. If the
// weights are narrower than the master weights, the update has another host
// buffer for the weight that is copied back.
void UpdatePlaces::placeState(ir::AdamwOp op, const UpdatedCopies &meant) {
  StringAttr label = op.getLabelAttr();
  ir::SegmentOp holder = holderOf(meant);
  const Array &stored = labels.parameter(labels.keyOf(holder, label));
  Type element = labels.keptAs(op.getGradient());
  Type value = element;
  ir::LayoutAttr layout;
  for (ir::SegmentOp segment : contents.segments)
    segment.walk([&](ir::ParameterOp read) {
      if (read.getLabelAttr() != label ||
          labels.keyOf(segment, label) != labels.keyOf(holder, label))
        return;
      value = labels.keptAs(read.getValue());
      layout = read.getLayoutAttr();
    });
  Type state = value.isF64() ? value : Float32Type::get(op.getContext());
  auto copies = labels.keyOf(holder, label).first
                    ? static_cast<int64_t>(holder.getRepeat())
                    : 1;
  SmallVector<Attribute> all{placeIn(stored, 0, copies > 1 ? 1 : 0, value)};
  StringRef arena = offloads ? "host" : "optimizer";
  auto keep = [&](Type type) {
    int64_t size = bytesOf(op.getGradient().getType(), type);
    all.push_back(placeCopies(
        allocateCopies(arena, arenas.end(arena), size, meant), meant, type));
  };
  // Without offloading, no separate master weight is needed if the weight has
  // the precision of the master and the rank stores the whole shard that it
  // updates.
  bool serves =
      !offloads && value == state &&
      (!op.getLayout() || !layout || isWithin(*op.getLayout(), layout));
  for (int i = 0; i < (serves ? 2 : 3); ++i)
    keep(state);
  if (offloads) {
    keep(places.lookup(op.getGradient()).getType());
    if (value != state)
      keep(value);
  }
  op->setAttr(ir::kStateAttrName, ArrayAttr::get(op.getContext(), all));
}

void UpdatePlaces::placeResult(Operation *op, const UpdatedCopies &meant,
                               int64_t &workspaceEnd) {
  Value result = op->getResult(0);
  ir::SegmentOp holder = holderOf(meant);
  if (auto read = llvm::dyn_cast<ir::AccumulatedOp>(op)) {
    const Array &array =
        labels.accumulator(labels.keyOf(holder, read.getLabelAttr()));
    Type element = labels.accumulated(read.getLabel(), labels.keptAs(result));
    places[result] = placePerLayer(array, element);
    SmallVector<Attribute> others;
    for (const Array &sum : labels.otherSumsOf(read.getLabel()))
      others.push_back(placeIn(sum, 0, 0, element));
    if (!others.empty())
      op->setAttr(ir::kStateAttrName, ArrayAttr::get(op->getContext(), others));
    return;
  }
  // A value that mtp.store reads is computed in the parameter's memory.
  for (Operation *user : result.getUsers())
    if (auto store = llvm::dyn_cast<ir::StoreOp>(user)) {
      const Array &array =
          labels.parameter(labels.keyOf(holder, store.getLabelAttr()));
      places[result] = placePerLayer(array, labels.keptAs(result));
      return;
    }
  if (ir::isUpdated(op)) {
    UpdatedCopies once = meant;
    once.count = 1;
    once.first = 0;
    Type element = labels.keptAs(result);
    places[result] =
        placeCopies(allocateCopies("workspace", workspaceEnd,
                                   bytesOf(result.getType(), element), once),
                    once, element);
    return;
  }
  ir::PlaceAttr operand = places.lookup(op->getOperand(0));
  if (llvm::isa<ir::AllReduceOp>(op) && op->getOperand(0).hasOneUse()) {
    places[result] = operand;
    return;
  }
  if (llvm::isa<ir::ReduceScatterOp>(op) && ir::isOverlapped(op)) {
    auto label = originOf(op)->getAttrOfType<StringAttr>("label");
    Array next = labels.accumulator(labels.keyOf(holder, label));
    next.offset += roundedUp(next.size, kAlignment);
    next.size = bytesOf(result.getType(), operand.getType());
    places[result] = placePerLayer(next, operand.getType());
    return;
  }
  places[result] = placeCopies(
      allocateCopies("activations", updateEnd,
                     bytesOf(result.getType(), operand.getType()), meant),
      meant, operand.getType());
}

// Returns the bytes of one layer's values between mtp.adamw and mtp.store.
int64_t UpdatePlaces::madeOf(ir::AdamwOp op) const {
  int64_t bytes = 0;
  for (Operation *one = op; one && one->getNumResults() == 1;) {
    Value made = one->getResult(0);
    one = made.hasOneUse() ? *made.user_begin() : nullptr;
    if (one && !llvm::isa<ir::StoreOp>(one))
      bytes +=
          roundedUp(bytesOf(made.getType(), labels.keptAs(made)), kAlignment);
  }
  return bytes;
}

// Divides the update into programs, each for the same layers of all its
// parameters. A parameter begins the next program if its temporary values and
// those of the current program together exceed the workspace of forward and
// backward. Operations on an updated parameter are in the program of its
// mtp.adamw.
LogicalResult UpdatePlaces::divideIntoPrograms() {
  struct Program {
    int64_t number = -1, first = 0, count = 0, taken = 0;
  };
  std::array<Program, 2> programs; // before and after the gradient norm
  ir::UpdateOp update = contents.update;
  Builder builder(update.getContext());
  for (Operation &op : update.getBody().front()) {
    FailureOr<UpdatedCopies> meant = updatedCopies(contents, &op);
    if (failed(meant))
      return failure();
    op.setAttr(ir::kCopiesAttrName,
               builder.getDenseI64ArrayAttr({meant->first, meant->count}));
    const ir::AdamwOp adamw = ir::updatedBy(&op);
    if (adamw && adamw != &op) {
      op.setAttr(ir::kUpdateProgramAttrName,
                 adamw->getAttr(ir::kUpdateProgramAttrName));
      continue;
    }
    Program &last = programs[adamw ? 1 : 0];
    const int64_t need = adamw ? madeOf(adamw) : 0;
    if (last.number < 0 || last.first != meant->first ||
        last.count != meant->count ||
        (last.taken > 0 && need > 0 && last.taken + need > workspace))
      last = {last.number + 1, meant->first, meant->count};
    last.taken += need;
    op.setAttr(ir::kUpdateProgramAttrName,
               builder.getI64IntegerAttr(last.number));
  }
  return success();
}

LogicalResult UpdatePlaces::place() {
  if (failed(divideIntoPrograms()))
    return failure();
  std::map<int64_t, int64_t> workspaceEnds;
  ir::UpdateOp update = contents.update;
  for (Operation &op : update.getBody().front()) {
    FailureOr<UpdatedCopies> meant = updatedCopies(contents, &op);
    if (failed(meant))
      return failure();
    if (auto adamw = llvm::dyn_cast<ir::AdamwOp>(op))
      placeState(adamw, *meant);
    if (auto store = llvm::dyn_cast<ir::StoreOp>(op)) {
      ir::SegmentOp holder = holderOf(*meant);
      const Array &array =
          labels.parameter(labels.keyOf(holder, store.getLabelAttr()));
      store->setAttr(
          ir::kPlacesAttrName,
          ArrayAttr::get(
              store.getContext(),
              {placePerLayer(array, labels.keptAs(store.getValue()))}));
    }
    if (op.getNumResults() == 0)
      continue;
    const auto program =
        op.getAttrOfType<IntegerAttr>(ir::kUpdateProgramAttrName).getInt();
    int64_t &end = workspaceEnds.try_emplace(program, arenas.end("workspace"))
                       .first->second;
    placeResult(&op, *meant, end);
  }
  return success();
}

} // namespace mtplan::passes
