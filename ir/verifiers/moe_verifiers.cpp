//===- moe_verifiers.cpp - Shapes of mixtures of experts ------------------===//

#include "ir/mtp.h"
#include "ir/verifiers/expect.h"

using namespace mlir;

namespace mtplan::ir {

// Checks the logits of samples, positions and experts, and that `topK` experts
// can be chosen.
static LogicalResult checkChoice(Operation *op, Value logits, uint64_t topK) {
  if (failed(expectRank(op, "logits", logits, 3)))
    return failure();
  int64_t experts = tensorOf(logits).getDimSize(2);
  auto chosen = static_cast<int64_t>(topK);
  if (chosen < 1 || chosen > experts)
    return op->emitOpError("needs a top_k from 1 to its ")
           << experts << " experts, got " << chosen;
  return success();
}

// Checks, in this order:
// - three dimensions: samples, positions, experts;
// - `top_k` is from 1 to the number of experts.
LogicalResult MoeGateOp::verify() {
  return checkChoice(*this, getLogits(), getTopK());
}

// Checks, in this order:
// - three dimensions: samples, positions, experts;
// - `top_k` is from 1 to the number of experts.
LogicalResult MoeGateGradOp::verify() {
  return checkChoice(*this, getLogits(), getTopK());
}

// Checks, in this order:
// - three dimensions: samples, positions, experts;
// - `top_k` is from 1 to the number of experts;
// - the result has the logits' shape and is of integers.
LogicalResult MoeSlotsOp::verify() {
  if (failed(checkChoice(*this, getLogits(), getTopK())) ||
      failed(expectShape(*this, "result", getResult(),
                         tensorOf(getLogits()).getShape())))
    return failure();
  return expectIntegers(*this, "result", getResult());
}

// Checks that tokens [b, s, h], slots [b, s, e] and places [e, b, c, h] fit
// each other.
static LogicalResult checkPlaces(Operation *op, StringRef tokensName,
                                 Value tokens, Value slots,
                                 StringRef placesName, Value places) {
  if (failed(expectRank(op, tokensName, tokens, 3)) ||
      failed(expectIntegers(op, "slots", slots)) ||
      failed(expectRank(op, "slots", slots, 3)) ||
      failed(expectRank(op, placesName, places, 4)))
    return failure();
  ArrayRef<int64_t> token = tensorOf(tokens).getShape();
  ArrayRef<int64_t> place = tensorOf(places).getShape();
  if (failed(expectShape(op, "slots", slots, {token[0], token[1], place[0]})))
    return failure();
  return expectShape(op, placesName, places,
                     {place[0], token[0], place[2], token[2]});
}

// Checks, in this order:
// - the input has three dimensions;
// - slots are integers [samples, positions, experts];
// - the result is [experts, samples, places, features].
LogicalResult MoeDispatchOp::verify() {
  return checkPlaces(*this, "input", getInput(), getSlots(), "result",
                     getResult());
}

// Checks, in this order:
// - the result has three dimensions;
// - slots are integers [samples, positions, experts];
// - the gradient is [experts, samples, places, features].
LogicalResult MoeDispatchGradOp::verify() {
  return checkPlaces(*this, "result", getResult(), getSlots(), "gradient",
                     getGradient());
}

// Checks, in this order:
// - the result has three dimensions;
// - slots are integers [samples, positions, experts];
// - the input is [experts, samples, places, features];
// - the gates have the shape of the slots.
LogicalResult MoeCombineOp::verify() {
  if (failed(checkPlaces(*this, "result", getResult(), getSlots(), "input",
                         getInput())))
    return failure();
  return expectShape(*this, "gates", getGates(),
                     tensorOf(getSlots()).getShape());
}

// Checks, in this order:
// - the gradient has three dimensions;
// - slots are integers [samples, positions, experts];
// - the input is [experts, samples, places, features];
// - the gates have the shape of the slots;
// - the results have the types of input and gates.
LogicalResult MoeCombineGradOp::verify() {
  if (failed(checkPlaces(*this, "gradient", getGradient(), getSlots(), "input",
                         getInput())) ||
      failed(expectShape(*this, "gates", getGates(),
                         tensorOf(getSlots()).getShape())) ||
      failed(expectType(*this, "input gradient", getInputGradient(),
                        getInput().getType())))
    return failure();
  return expectType(*this, "gates gradient", getGatesGradient(),
                    getGates().getType());
}

// Checks, in this order:
// - three dimensions: samples, positions, experts;
// - `top_k` is from 1 to the number of experts;
// - count and the result are scalars.
LogicalResult BalanceLossOp::verify() {
  if (failed(checkChoice(*this, getLogits(), getTopK())) ||
      failed(expectRank(*this, "count", getCount(), 0)))
    return failure();
  return expectRank(*this, "result", getResult(), 0);
}

// Checks, in this order:
// - three dimensions: samples, positions, experts;
// - `top_k` is from 1 to the number of experts;
// - count is a scalar;
// - the result has the logits' type.
LogicalResult BalanceLossGradOp::verify() {
  if (failed(checkChoice(*this, getLogits(), getTopK())) ||
      failed(expectRank(*this, "count", getCount(), 0)))
    return failure();
  return expectType(*this, "result", getResult(), getLogits().getType());
}

} // namespace mtplan::ir
