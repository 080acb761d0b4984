//===- update_places.cpp - Where an update works --------------------------===//
//
// Pieces of reduced gradients wait for the norm of all gradients. They are in
// the arena of activations, which is empty by then; or, so that backward may
// still run, where the whole gradient of the next copy was, which has been
// scattered. Whatever the number of copies, the latter takes room for one more
// piece. (Megatron's buffers keep a rank's piece within the whole, at an offset
// that depends on the rank; a place is the same on all ranks.) What is made of
// updated pieces is in the workspace, side by side for all parameters of a
// program, so that no parameter waits for another.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <array>
#include <utility>

#include "mlir/IR/Builders.h"

#include "ir/replica_axes.h"
#include "ir/update_chain.h"
#include "passes/memory/stage_places.h"

using namespace mlir;

namespace mtplan::passes {

// Returns the operation of the update that names the parameter `op` works for.
static Operation *originOf(Operation *op) {
  while (!op->hasAttr("label") && op->getNumOperands() > 0)
    op = op->getOperand(0).getDefiningOp();
  return op;
}

// Whether a rank's piece in layout `fine` is a part of its piece in layout
// `coarse`.
static bool isWithin(ir::LayoutAttr fine, ir::LayoutAttr coarse) {
  return llvm::all_of(
      llvm::zip_equal(fine.getDims(), coarse.getDims()), [](auto dims) {
        ArrayRef<Attribute> all = std::get<0>(dims).getValue();
        ArrayRef<Attribute> first = std::get<1>(dims).getValue();
        return all.take_front(first.size()) == first;
      });
}

FailureOr<StagePlaces::Meant> StagePlaces::meantBy(Operation *op) const {
  Operation *origin = originOf(op);
  auto label = origin->getAttrOfType<StringAttr>("label");
  Meant meant;
  if (!label.getValue().contains('*'))
    return meant;
  auto copies = origin->getAttrOfType<DenseI64ArrayAttr>("copies");
  for (ir::SegmentOp segment : contents.segments) {
    auto first = static_cast<int64_t>(segment.getFirst());
    auto count = static_cast<int64_t>(segment.getRepeat());
    if (!accumulators.count(keyOf(segment, label)))
      continue;
    int64_t from = copies ? copies[0] : first,
            many = copies ? copies[1] : count;
    if (from + many <= first || first + count <= from)
      continue;
    if (meant.holder || from < first || first + count < from + many)
      return op->emitOpError("is of copies of several segments; each has to "
                             "have its own");
    meant = {segment, from - first, many};
  }
  if (!meant.holder)
    return op->emitOpError("is of copies that no segment of its stage has");
  return meant;
}

StagePlaces::Array StagePlaces::allocateCopies(StringRef arena, int64_t &end,
                                               int64_t size,
                                               const Meant &meant) {
  int64_t kept = std::exchange(ends[arena.str()], end);
  Array array = allocate(arena, size, meant.count);
  end = std::exchange(ends[arena.str()], kept);
  return array;
}

// Copies count from the segment's first, so that entry 0 belongs to the first
// copy that is meant.
ir::PlaceAttr StagePlaces::placeCopies(const Array &array, const Meant &meant,
                                       Type element) const {
  int64_t entry = (meant.count - meant.first % meant.count) % meant.count;
  return placeIn(array, entry, meant.count > 1 ? 1 : 0, element);
}

// Moments and master weights have at least single precision. The host cannot
// reach the device's memory: it has places for the gradient that arrives and,
// if weights are narrower than their masters, for the weight that leaves.
void StagePlaces::placeState(ir::AdamwOp op, const Meant &meant) {
  StringAttr label = op.getLabelAttr();
  ir::SegmentOp holder =
      meant.holder ? meant.holder : contents.segments.front();
  const Array &stored = parameters.at(keyOf(holder, label));
  Type element = keptAs(op.getGradient());
  Type value = element;
  ir::LayoutAttr layout;
  for (ir::SegmentOp segment : contents.segments)
    segment.walk([&](ir::ParameterOp read) {
      if (read.getLabelAttr() != label ||
          keyOf(segment, label) != keyOf(holder, label))
        return;
      value = keptAs(read.getValue());
      layout = read.getLayoutAttr();
    });
  Type state = value.isF64() ? value : Float32Type::get(op.getContext());
  auto copies =
      keyOf(holder, label).first ? static_cast<int64_t>(holder.getRepeat()) : 1;
  SmallVector<Attribute> all{placeIn(stored, 0, copies > 1 ? 1 : 0, value)};
  StringRef arena = offloads ? "host" : "optimizer";
  auto keep = [&](Type type) {
    int64_t size = bytesOf(op.getGradient().getType(), type);
    all.push_back(placeCopies(
        allocateCopies(arena, ends[arena.str()], size, meant), meant, type));
  };
  // The weight itself serves as its master if it is as wide and the rank stores
  // all of the piece that it updates.
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

// Returns the scatter that may run while backward does: the first over
// replicas, over whose axis layers have no other traffic to follow. The
// gradient must not be added up again by an earlier segment or another stage.
ir::ReduceScatterOp StagePlaces::scatterOf(ir::AccumulatedOp sum) const {
  if (!scattersEarly)
    return {};
  if (!sum.getLabel().contains('*')) {
    int64_t users = 0;
    for (ir::SegmentOp segment : contents.segments)
      segment.walk([&](ir::AccumulateOp op) {
        users += op.getLabel() != sum.getLabel() ? 0
                 : isOfCopies(segment)           ? 2
                                                 : 1;
      });
    if (users > 1)
      return {};
  }
  ir::ReduceScatterOp first;
  for (Value value = sum.getResult(); value.hasOneUse();) {
    Operation *next = *value.user_begin();
    auto reduce = llvm::dyn_cast<ir::AllReduceOp>(next);
    auto scatter = llvm::dyn_cast<ir::ReduceScatterOp>(next);
    if (!reduce && !scatter)
      return first;
    const StringRef axis = reduce ? reduce.getAxis() : scatter.getAxis();
    if (axis == ir::kStageAxis || (!first && !ir::isReplicaAxis(axis)))
      break;
    if (!first)
      first = scatter;
    value = next->getResult(0);
  }
  return {};
}

void StagePlaces::placeResult(Operation *op, const Meant &meant,
                              int64_t &workspaceEnd) {
  Value result = op->getResult(0);
  ir::SegmentOp holder =
      meant.holder ? meant.holder : contents.segments.front();
  if (auto read = llvm::dyn_cast<ir::AccumulatedOp>(op)) {
    const Array &array = accumulators.at(keyOf(holder, read.getLabelAttr()));
    Type element = accumulated(read.getLabel(), keptAs(result));
    places[result] = placeIn(array, 0, array.entries > 1 ? 1 : 0, element);
    SmallVector<Attribute> others;
    if (auto sums = otherSums.find(read.getLabel().str());
        sums != otherSums.end())
      for (const auto &[user, sum] : sums->second)
        others.push_back(placeIn(sum, 0, 0, element));
    if (!others.empty())
      op->setAttr(ir::kStateAttrName, ArrayAttr::get(op->getContext(), others));
    return;
  }
  // A value that is stored is made in the parameter's place.
  for (Operation *user : result.getUsers())
    if (auto store = llvm::dyn_cast<ir::StoreOp>(user)) {
      const Array &array = parameters.at(keyOf(holder, store.getLabelAttr()));
      places[result] =
          placeIn(array, 0, array.entries > 1 ? 1 : 0, keptAs(result));
      return;
    }
  if (ir::isUpdated(op)) {
    Meant once = meant;
    once.count = 1;
    once.first = 0;
    Type element = keptAs(result);
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
  if (auto sum = llvm::dyn_cast<ir::AccumulatedOp>(originOf(op));
      sum && llvm::isa<ir::ReduceScatterOp>(op) && scatterOf(sum) == op &&
      meant.count ==
          accumulators.at(keyOf(holder, sum.getLabelAttr())).entries) {
    Array behind = accumulators.at(keyOf(holder, sum.getLabelAttr()));
    behind.offset += roundedUp(behind.size, kAlignment);
    behind.size = bytesOf(result.getType(), operand.getType());
    places[result] =
        placeIn(behind, 0, behind.entries > 1 ? 1 : 0, operand.getType());
    return;
  }
  places[result] = placeCopies(
      allocateCopies("activations", updateEnd,
                     bytesOf(result.getType(), operand.getType()), meant),
      meant, operand.getType());
}

// Returns the bytes of what is made of one copy's updated piece before it is
// stored.
int64_t StagePlaces::madeOf(ir::AdamwOp op) const {
  int64_t bytes = 0;
  for (Operation *one = op; one && one->getNumResults() == 1;) {
    Value made = one->getResult(0);
    one = made.hasOneUse() ? *made.user_begin() : nullptr;
    if (one && !llvm::isa<ir::StoreOp>(one))
      bytes += roundedUp(bytesOf(made.getType(), keptAs(made)), kAlignment);
  }
  return bytes;
}

// Divides the update into programs, each for the same copies of all its
// parameters. A program's temporaries fit into the workspace that forward and
// backward need anyway; where one more parameter does not fit, the next program
// begins.
LogicalResult StagePlaces::dealIntoPrograms() {
  int64_t room = 0;
  for (const Fill &fill : workspaces)
    room = std::max(room, fill.used);
  struct Program {
    int64_t number = -1, first = 0, count = 0, taken = 0;
  };
  std::array<Program, 2> programs; // before the norm and behind it
  for (Operation &op : contents.update.getBody().front()) {
    FailureOr<Meant> meant = meantBy(&op);
    if (failed(meant))
      return failure();
    Program &last = programs[ir::isUpdated(&op) ? 1 : 0];
    const auto adamw = llvm::dyn_cast<ir::AdamwOp>(op);
    const int64_t need = adamw ? madeOf(adamw) : 0;
    if (last.number < 0 || last.first != meant->first ||
        last.count != meant->count ||
        (last.taken > 0 && need > 0 && last.taken + need > room))
      last = {last.number + 1, meant->first, meant->count};
    last.taken += need;
    Builder builder(op.getContext());
    op.setAttr(ir::kCopiesAttrName,
               builder.getDenseI64ArrayAttr({last.first, last.count}));
    op.setAttr(ir::kUpdateProgramAttrName,
               builder.getI64IntegerAttr(last.number));
  }
  return success();
}

LogicalResult StagePlaces::placeUpdate() {
  if (!contents.update)
    return success();
  if (failed(dealIntoPrograms()))
    return failure();
  int64_t workspaceEnd = ends["workspace"];
  Attribute program; // of the last operation that used the workspace
  for (Operation &op : contents.update.getBody().front()) {
    FailureOr<Meant> meant = meantBy(&op);
    if (failed(meant))
      return failure();
    if (ir::isUpdated(&op) &&
        program != op.getAttr(ir::kUpdateProgramAttrName)) {
      program = op.getAttr(ir::kUpdateProgramAttrName);
      workspaceEnd = ends["workspace"];
    }
    if (auto adamw = llvm::dyn_cast<ir::AdamwOp>(op))
      placeState(adamw, *meant);
    if (auto store = llvm::dyn_cast<ir::StoreOp>(op)) {
      ir::SegmentOp holder =
          meant->holder ? meant->holder : contents.segments.front();
      const Array &array = parameters.at(keyOf(holder, store.getLabelAttr()));
      store->setAttr(
          ir::kPlacesAttrName,
          ArrayAttr::get(store.getContext(),
                         {placeIn(array, 0, array.entries > 1 ? 1 : 0,
                                  keptAs(store.getValue()))}));
    }
    if (op.getNumResults() > 0)
      placeResult(&op, *meant, workspaceEnd);
  }
  return success();
}

} // namespace mtplan::passes
