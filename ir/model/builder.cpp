//===- builder.cpp - Builds a model from operators ------------------------===//

#include "ir/model/builder.h"

using namespace mlir;

namespace mtplan::ir {

namespace {

using Shape = SmallVector<std::int64_t, 4>;

Shape withWidth(Value value, std::int64_t width) {
  Shape shape(shapeOf(value));
  shape.back() = width;
  return shape;
}

} // namespace

ModelBuilder::ModelBuilder(MLIRContext &context, StringRef fileName,
                           Type activationType)
    : ops(&context), location(FileLineColLoc::get(&context, fileName, 0, 0)),
      element(activationType), module(ModuleOp::create(location)) {
  ops.setInsertionPointToEnd(module->getBody());
}

ValueRange ModelBuilder::beginSegment(StringRef name, std::int64_t repeat,
                                      std::int64_t first) {
  ops.setInsertionPointToEnd(module->getBody());
  auto segment = ops.create<SegmentOp>(location, name, repeat, first,
                                       /*chunk=*/nullptr, /*layouts=*/nullptr);
  Block &block = segment.getBody().emplaceBlock();
  for (Type type : carried)
    block.addArgument(type, location);
  ops.setInsertionPointToEnd(&block);
  return block.getArguments();
}

void ModelBuilder::endSegment(ValueRange values) {
  ops.create<YieldOp>(location, values, /*layouts=*/nullptr);
  carried.assign(values.getTypes().begin(), values.getTypes().end());
}

void ModelBuilder::endChain(Value loss) {
  ops.create<AccumulateOp>(location, "loss", loss, LayoutAttr());
  endSegment({});
}

Value ModelBuilder::tokens(StringRef label, std::int64_t sequence,
                           std::int64_t limit) {
  auto type = RankedTensorType::get({1, sequence}, ops.getI32Type());
  return ops.create<InputOp>(location, type, label,
                             ops.getStrArrayAttr({"batch", "sequence"}),
                             ops.getI64IntegerAttr(limit), LayoutAttr());
}

Value ModelBuilder::features(StringRef label, std::int64_t sequence,
                             std::int64_t width) {
  return ops.create<InputOp>(
      location, tensor({1, sequence, width}), label,
      ops.getStrArrayAttr({"batch", "sequence", "other"}), IntegerAttr(),
      LayoutAttr());
}

Value ModelBuilder::parameter(const Twine &label, ArrayRef<std::int64_t> shape,
                              StringRef init, ArrayRef<std::int64_t> unpadded) {
  return ops.create<ParameterOp>(location, tensor(shape), label.str(), init,
                                 LayoutAttr(),
                                 unpadded.empty() || unpadded == shape
                                     ? DenseI64ArrayAttr()
                                     : ops.getDenseI64ArrayAttr(unpadded));
}

Value ModelBuilder::embedding(StringRef label, Value ids, Padded rows,
                              std::int64_t width, StringRef table) {
  Value weight = parameter(table.empty() ? label + ".weight" : Twine(table),
                           {rows.stored, width}, "normal", {rows.used, width});
  Shape shape(shapeOf(ids));
  shape.push_back(width);
  return ops.create<EmbeddingOp>(location, tensor(shape), label, ids, weight);
}

Value ModelBuilder::positions(StringRef label, Value input, std::int64_t rows) {
  Value table =
      parameter(label + ".weight", {rows, shapeOf(input).back()}, "normal");
  return ops.create<PositionEmbeddingOp>(location, input.getType(), label,
                                         input, table);
}

Value ModelBuilder::linear(StringRef label, Value input, std::int64_t width,
                           bool bias, StringRef init) {
  Value weight =
      parameter(label + ".weight", {shapeOf(input).back(), width}, init);
  Value addend = bias ? parameter(label + ".bias", {width}, "zeros") : Value();
  return ops.create<EinsumOp>(location, tensor(withWidth(input, width)), label,
                              "bsi,io->bso", input, weight, addend);
}

Value ModelBuilder::logits(StringRef label, Value input, Padded vocabulary,
                           StringRef table, bool bias) {
  std::int64_t width = shapeOf(input).back();
  bool tied = !table.empty();
  Value weight = tied ? parameter(table, {vocabulary.stored, width}, "normal",
                                  {vocabulary.used, width})
                      : parameter(label + ".weight", {width, vocabulary.stored},
                                  "normal", {width, vocabulary.used});
  Value addend = bias ? parameter(label + ".bias", {vocabulary.stored}, "zeros",
                                  {vocabulary.used})
                      : Value();
  std::string tokens = shapeOf(input).size() == 2 ? "b" : "bs";
  return ops.create<EinsumOp>(
      location, tensor(withWidth(input, vocabulary.stored)), label,
      tokens + (tied ? "i,vi->" : "i,iv->") + tokens + "v", input, weight,
      addend);
}

Value ModelBuilder::layerNorm(StringRef label, Value input, double epsilon) {
  std::int64_t width = shapeOf(input).back();
  Value gamma = parameter(label + ".weight", {width}, "ones");
  Value beta = parameter(label + ".bias", {width}, "zeros");
  return ops.create<LayerNormOp>(location, input.getType(),
                                 ops.getStringAttr(label), input, gamma, beta,
                                 ops.getF64FloatAttr(epsilon), IntegerAttr());
}

Value ModelBuilder::rmsNorm(StringRef label, Value input, double epsilon) {
  Value gamma = parameter(label + ".weight", {shapeOf(input).back()}, "ones");
  return ops.create<RmsNormOp>(location, input.getType(),
                               ops.getStringAttr(label), input, gamma,
                               ops.getF64FloatAttr(epsilon), IntegerAttr());
}

Value ModelBuilder::activation(StringRef label, Activation kind, Value input) {
  return ops.create<ActivationOp>(location, input.getType(), label, kind,
                                  input);
}

Value ModelBuilder::swiglu(StringRef label, Value gate, Value up) {
  return ops.create<SwigluOp>(location, gate.getType(), label, gate, up);
}

Value ModelBuilder::add(StringRef label, Value lhs, Value rhs) {
  return ops.create<AddOp>(location, lhs.getType(), label, lhs, rhs);
}

Value ModelBuilder::mul(StringRef label, Value lhs, Value rhs) {
  return ops.create<MulOp>(location, lhs.getType(), label, lhs, rhs);
}

Value ModelBuilder::scale(StringRef label, Value input, double factor) {
  return ops.create<ScaleOp>(location, input.getType(),
                             ops.getStringAttr(label), input,
                             ops.getF64FloatAttr(factor));
}

Value ModelBuilder::softcap(StringRef label, Value input, double cap) {
  if (cap == 0.0)
    return input;
  return ops.create<LogitSoftcapOp>(location, input.getType(),
                                    ops.getStringAttr(label), input,
                                    ops.getF64FloatAttr(cap));
}

Value ModelBuilder::putFirst(StringRef label, Value input) {
  Value vector =
      parameter(label + ".weight", {shapeOf(input).back()}, "normal");
  return ops.create<PutFirstOp>(location, input.getType(), label, input,
                                vector);
}

Value ModelBuilder::takeFirst(StringRef label, Value input) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  return ops.create<TakeFirstOp>(location, tensor({shape[0], shape[2]}), label,
                                 input);
}

Value ModelBuilder::dropout(StringRef label, Value input, double rate) {
  if (rate == 0.0)
    return input;
  return ops.create<DropoutOp>(
      location, input.getType(), ops.getStringAttr(label), input,
      ops.getF64FloatAttr(rate), ops.getStringAttr(label));
}

Value ModelBuilder::rope(StringRef label, Value input, std::int64_t headDim,
                         std::int64_t rotaryDim, double theta,
                         bool interleaved) {
  return ops.create<RopeOp>(
      location, input.getType(), ops.getStringAttr(label), input,
      ops.getI64IntegerAttr(headDim), ops.getI64IntegerAttr(rotaryDim),
      ops.getF64FloatAttr(theta), interleaved ? ops.getUnitAttr() : UnitAttr());
}

Value ModelBuilder::attention(StringRef label, Value query, Value key,
                              Value value, std::int64_t headDim, bool causal,
                              double scale, double rate, Value bias,
                              std::int64_t maxDistance, double softcap) {
  Shape lse = withWidth(query, shapeOf(query).back() / headDim);
  return ops
      .create<AttentionOp>(
          location, query.getType(),
          RankedTensorType::get(lse, ops.getF32Type()),
          ops.getStringAttr(label), query, key, value, bias,
          ops.getI64IntegerAttr(headDim), ops.getBoolAttr(causal),
          ops.getF64FloatAttr(scale), ops.getF64FloatAttr(rate),
          ops.getStringAttr(label),
          bias ? ops.getI64IntegerAttr(maxDistance) : IntegerAttr(),
          softcap > 0.0 ? ops.getF64FloatAttr(softcap) : FloatAttr())
      .getResult();
}

Value ModelBuilder::count() {
  return ops.create<InputOp>(
      location, RankedTensorType::get({}, ops.getF32Type()), "count",
      ops.getStrArrayAttr({}), IntegerAttr(), LayoutAttr());
}

Value ModelBuilder::loss(Value logits, std::int64_t classes) {
  // The reductions of the loss have one float32 per token, whatever the type of
  // the logits.
  auto perToken =
      RankedTensorType::get(shapeOf(logits).drop_back(), ops.getF32Type());
  auto scalar = RankedTensorType::get({}, ops.getF32Type());
  Value targets =
      perToken.getRank() == 2
          ? tokens("targets", perToken.getDimSize(1), classes)
          : ops.create<InputOp>(
                   location,
                   RankedTensorType::get(perToken.getShape(), ops.getI32Type()),
                   "targets", ops.getStrArrayAttr({"batch"}),
                   ops.getI64IntegerAttr(classes), LayoutAttr())
                .getValue();
  Value tokensOfStep = count();
  Value maximum =
      ops.create<VocabMaxOp>(location, perToken, "loss.max", logits, classes);
  Value sumExp = ops.create<VocabSumExpOp>(location, perToken, "loss.sum_exp",
                                           logits, maximum, classes);
  Value picked =
      ops.create<VocabPickOp>(location, perToken, "loss.pick", logits, targets);
  return ops.create<TokenLossOp>(location, scalar, "loss", maximum, sumExp,
                                 picked, targets, tokensOfStep);
}

Value ModelBuilder::router(StringRef label, Value input, std::int64_t experts) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  Value weight = parameter(label + ".weight", {shape[2], experts}, "normal");
  return ops.create<EinsumOp>(location, tensor({shape[0], shape[1], experts}),
                              label, "bsi,ie->bse", input, weight, Value());
}

Value ModelBuilder::moeGate(StringRef label, Value logits, std::int64_t topK,
                            bool normalise) {
  return ops.create<MoeGateOp>(
      location, logits.getType(), ops.getStringAttr(label), logits,
      ops.getI64IntegerAttr(topK), normalise ? ops.getUnitAttr() : UnitAttr());
}

Value ModelBuilder::moeSlots(StringRef label, Value logits, std::int64_t topK) {
  auto type = RankedTensorType::get(shapeOf(logits), ops.getI32Type());
  return ops.create<MoeSlotsOp>(location, type, label, logits, topK);
}

Value ModelBuilder::moeDispatch(StringRef label, Value input, Value slots,
                                std::int64_t places) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  return ops.create<MoeDispatchOp>(
      location, tensor({shapeOf(slots)[2], shape[0], places, shape[2]}), label,
      input, slots);
}

Value ModelBuilder::expertLinear(StringRef label, Value input,
                                 std::int64_t width, StringRef init) {
  ArrayRef<std::int64_t> shape = shapeOf(input);
  Value weight =
      parameter(label + ".weight", {shape[0], shape[3], width}, init);
  return ops.create<EinsumOp>(location,
                              tensor({shape[0], shape[1], shape[2], width}),
                              label, "ebci,eio->ebco", input, weight, Value());
}

Value ModelBuilder::moeCombine(StringRef label, Value input, Value gates,
                               Value slots) {
  ArrayRef<std::int64_t> tokens = shapeOf(slots);
  return ops.create<MoeCombineOp>(
      location, tensor({tokens[0], tokens[1], shapeOf(input)[3]}), label, input,
      gates, slots);
}

void ModelBuilder::balanceLoss(StringRef label, Value logits, std::int64_t topK,
                               double coefficient) {
  Value loss = ops.create<BalanceLossOp>(
      location, RankedTensorType::get({}, ops.getF32Type()),
      ops.getStringAttr(label), logits, count(), ops.getI64IntegerAttr(topK),
      ops.getF64FloatAttr(coefficient));
  ops.create<AccumulateOp>(location, label, loss, LayoutAttr());
}

Value ModelBuilder::tokenGate(StringRef label, Value input, Value value) {
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
