//===- label_places.cpp - Memory of parameters and gradients --------------===//

#include "passes/memory/label_places.h"

#include "mlir/IR/Builders.h"

#include "ir/decisions.h"
#include "passes/memory/offsets.h"

using namespace mlir;

namespace mtplan::passes {

LabelPlaces::LabelPlaces(const StageContents &stageContents,
                         Arenas &stageArenas, Type gradientType)
    : contents(stageContents), arenas(stageArenas), wider(gradientType) {
  for (ir::SegmentOp segment : contents.segments)
    segment.walk(
        [&](ir::ParameterOp op) { trained.insert(op.getLabel().str()); });
}

std::vector<Array> LabelPlaces::otherSumsOf(StringRef label) const {
  std::vector<Array> sums;
  if (auto found = otherSums.find(label.str()); found != otherSums.end())
    for (const auto &[segment, sum] : found->second)
      sums.push_back(sum);
  return sums;
}

// A value that is only reported has double precision, like the sum in which it
// is reported.
Type LabelPlaces::keptAs(Value value) const {
  Type element = llvm::cast<RankedTensorType>(value.getType()).getElementType();
  bool reported = !value.use_empty() &&
                  llvm::all_of(value.getUsers(), [&](Operation *user) {
                    auto sum = llvm::dyn_cast<ir::AccumulateOp>(user);
                    return sum && !trained.count(sum.getLabel().str());
                  });
  return reported ? Float64Type::get(element.getContext()) : element;
}

LabelPlaces::Key LabelPlaces::keyOf(ir::SegmentOp segment,
                                    StringAttr label) const {
  bool ofCopies = label.getValue().contains('*');
  return {ofCopies ? segment.getOperation() : nullptr, label.str()};
}

// Returns the PlaceAttr of `label`. If the label has a `*`, each segment has
// its own array; otherwise the stage has one array. The first call for an array
// allocates the array.
ir::PlaceAttr LabelPlaces::placeOfLabel(std::map<Key, Array> &arrays,
                                        StringRef arena, ir::SegmentOp segment,
                                        StringAttr label, Type type,
                                        Type element) {
  Key key = keyOf(segment, label);
  auto copies = key.first ? static_cast<int64_t>(segment.getRepeat()) : 1;
  auto found = arrays.find(key);
  if (found == arrays.end())
    found = arrays
                .emplace(key,
                         arenas.allocate(arena, bytesOf(type, element), copies))
                .first;
  return placeIn(found->second, 0, copies > 1 ? 1 : 0, element);
}

// Reports are summed in double precision, so that the result, rounded to single
// precision, does not depend on the order of micro-batches.
Type LabelPlaces::accumulated(StringRef label, Type element) const {
  if (!trained.count(label.str()))
    return Float64Type::get(element.getContext());
  bool narrow = llvm::isa<FloatType>(element) && wider &&
                element.getIntOrFloatBitWidth() < wider.getIntOrFloatBitWidth();
  return narrow ? wider : element;
}

void LabelPlaces::place(ir::SegmentOp segment,
                        llvm::DenseMap<Value, ir::PlaceAttr> &places) {
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

// An overlapped reduce-scatter writes the shard of the segment's last layer
// behind the accumulators of all layers. Returns the bytes that `label` needs
// for this shard, or 0 if no reduce-scatter of the label's gradient overlaps
// with `segment`.
int64_t LabelPlaces::bytesBehind(ir::SegmentOp segment, StringAttr label,
                                 Type element) const {
  int64_t bytes = 0;
  ir::UpdateOp update = contents.update;
  if (!update)
    return bytes;
  for (auto scatter : update.getBody().front().getOps<ir::ReduceScatterOp>())
    if (ir::isOverlapped(scatter) &&
        originOf(scatter)->getAttr("label") == label &&
        scatter->getAttr(ir::kOverlappedAttrName) == segment.getSymNameAttr())
      bytes = std::max(
          bytes, roundedUp(bytesOf(scatter.getResult().getType(), element),
                           kAlignment));
  return bytes;
}

ir::PlaceAttr LabelPlaces::placeOfSum(ir::SegmentOp segment,
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
      arenas.end("gradients") +=
          bytesBehind(segment, op.getLabelAttr(), element);
    return place;
  }
  auto &others = otherSums[label];
  auto found = llvm::find_if(others, [&](const auto &other) {
    return other.first == segment.getOperation();
  });
  if (found == others.end()) {
    others.emplace_back(
        segment, arenas.allocate("gradients", bytesOf(type, element), 1));
    found = std::prev(others.end());
  }
  return placeIn(found->second, 0, 0, element);
}

} // namespace mtplan::passes
