//===- moe_builder.cpp - Builds mixtures of experts -------------*- C++ -*-===//

#include "ir/model/builder.h"

using namespace mlir;

namespace mtplan::ir {

Value ModelBuilder::router(llvm::StringRef label, Value input,
                           std::int64_t experts) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  Value weight = parameter(label + ".weight", {shape[2], experts}, "normal");
  return ops.create<EinsumOp>(location, tensor({shape[0], shape[1], experts}),
                              label, "bsi,ie->bse", input, weight, Value());
}

Value ModelBuilder::moeGate(llvm::StringRef label, Value logits,
                            std::int64_t topK, bool normalise) {
  return ops.create<MoeGateOp>(
      location, logits.getType(), ops.getStringAttr(label), logits,
      ops.getI64IntegerAttr(topK), normalise ? ops.getUnitAttr() : UnitAttr());
}

Value ModelBuilder::moeSlots(llvm::StringRef label, Value logits,
                             std::int64_t topK) {
  auto type = RankedTensorType::get(shapeOf(logits), ops.getI32Type());
  return ops.create<MoeSlotsOp>(location, type, label, logits, topK);
}

Value ModelBuilder::moeDispatch(llvm::StringRef label, Value input, Value slots,
                                std::int64_t places) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  return ops.create<MoeDispatchOp>(
      location, tensor({shapeOf(slots)[2], shape[0], places, shape[2]}), label,
      input, slots);
}

Value ModelBuilder::expertLinear(llvm::StringRef label, Value input,
                                 std::int64_t width, llvm::StringRef init) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  Value weight =
      parameter(label + ".weight", {shape[0], shape[3], width}, init);
  return ops.create<EinsumOp>(location,
                              tensor({shape[0], shape[1], shape[2], width}),
                              label, "ebci,eio->ebco", input, weight, Value());
}

Value ModelBuilder::moeCombine(llvm::StringRef label, Value input, Value gates,
                               Value slots) {
  ArrayRef<std::int64_t> tokens = shapeOf(slots);
  return ops.create<MoeCombineOp>(
      location, tensor({tokens[0], tokens[1], shapeOf(input)[3]}), label, input,
      gates, slots);
}

void ModelBuilder::balanceLoss(llvm::StringRef label, Value logits,
                               std::int64_t topK, double coefficient) {
  Value loss = ops.create<BalanceLossOp>(
      location, RankedTensorType::get({}, ops.getF32Type()),
      ops.getStringAttr(label), logits, count(), ops.getI64IntegerAttr(topK),
      ops.getF64FloatAttr(coefficient));
  ops.create<AccumulateOp>(location, label, loss, LayoutAttr());
}

Value ModelBuilder::tokenGate(llvm::StringRef label, Value input, Value value) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  Value weight = parameter(label + ".weight", {shape[2]}, "normal");
  Value logit = ops.create<EinsumOp>(location, tensor(shape.drop_back()), label,
                                     "bsi,i->bs", input, weight, Value());
  Value share =
      activation((label + ".sigmoid").str(), Activation::Sigmoid, logit);
  return ops.create<EinsumOp>(location, value.getType(),
                              (label + ".scale").str(), "bs,bsh->bsh", share,
                              value, Value());
}

} // namespace mtplan::ir
