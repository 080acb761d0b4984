//===- builder.h - Builds a model from operators ----------------*- C++ -*-===//
//
// ModelBuilder is a thin layer over OpBuilder. It derives result shapes from
// the operands, and names parameters after their operator (`label`.weight,
// `label`.bias). Activations are [batch, sequence, features] and weights are
// [in, out].
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MODEL_BUILDER_H
#define MTPLAN_IR_MODEL_BUILDER_H

#include <cstdint>
#include <string>

#include "llvm/ADT/Twine.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"

#include "ir/mtp.h"

namespace mtplan::ir {

/// Holds the size of a padded dimension, such as the rows of an embedding
/// table, and its size without padding.
struct Padded {
  std::int64_t stored = 1, used = 1;
};

class ModelBuilder {
public:
  using StringRef = llvm::StringRef;
  using Value = mlir::Value;

  ModelBuilder(mlir::MLIRContext &context, StringRef fileName,
               mlir::Type activationType);

  mlir::OpBuilder ops;
  mlir::Location location;
  mlir::Type element; ///< element type of activations and parameters
  mlir::OwningOpRef<mlir::ModuleOp> module;

  /// Starts a segment and returns its arguments, which have the types that the
  /// previous segment yields.
  mlir::ValueRange beginSegment(StringRef name, std::int64_t repeat = 1,
                                std::int64_t first = 0);
  void endSegment(mlir::ValueRange values);
  /// Ends the last segment, which reports `loss` and yields nothing.
  void endChain(Value loss);

  mlir::RankedTensorType tensor(llvm::ArrayRef<std::int64_t> shape) const {
    return mlir::RankedTensorType::get(shape, element);
  }
  /// Adds an input [batch, sequence] of token numbers below `limit`.
  Value tokens(StringRef label, std::int64_t sequence, std::int64_t limit);
  /// Adds an input [batch, sequence, width] of floating-point features.
  Value features(StringRef label, std::int64_t sequence, std::int64_t width);
  /// \param unpadded  the shape without padding; empty if nothing is padded
  Value parameter(const llvm::Twine &label, llvm::ArrayRef<std::int64_t> shape,
                  StringRef init, llvm::ArrayRef<std::int64_t> unpadded = {});

  /// Looks up rows of the parameter `table` [rows, width], by default
  /// `label`.weight.
  Value embedding(StringRef label, Value ids, Padded rows, std::int64_t width,
                  StringRef table = "");
  Value positions(StringRef label, Value input, std::int64_t rows);
  /// Multiplies the input by `label`.weight and adds `label`.bias if `bias`.
  Value linear(StringRef label, Value input, std::int64_t width, bool bias,
               StringRef init = "normal");
  /// Computes logits. The input is multiplied by the transpose of the parameter
  /// `table` [vocabulary, in] or, if `table` is empty, by `label`.weight [in,
  /// vocabulary].
  Value logits(StringRef label, Value input, Padded vocabulary, StringRef table,
               bool bias);
  Value layerNorm(StringRef label, Value input, double epsilon);
  Value rmsNorm(StringRef label, Value input, double epsilon);
  Value activation(StringRef label, Activation kind, Value input);
  Value swiglu(StringRef label, Value gate, Value up);
  Value add(StringRef label, Value lhs, Value rhs);
  Value mul(StringRef label, Value lhs, Value rhs);
  Value scale(StringRef label, Value input, double factor);
  Value putFirst(StringRef label, Value input);
  /// Bounds the input smoothly to cap * tanh(input / cap). Returns `input`
  /// itself if `cap` is 0.
  Value softcap(StringRef label, Value input, double cap);
  /// Returns the first position: [batch, features].
  Value takeFirst(StringRef label, Value input);
  /// Applies dropout, with a mask called `label`. Returns `input` itself if
  /// `rate` is 0.
  Value dropout(StringRef label, Value input, double rate);
  Value rope(StringRef label, Value input, std::int64_t headDim,
             std::int64_t rotaryDim, double theta, bool interleaved);
  Value attention(StringRef label, Value query, Value key, Value value,
                  std::int64_t headDim, bool causal, double scale, double rate,
                  Value bias = {}, std::int64_t maxDistance = 0,
                  double softcap = 0.0);
  /// Returns the product of the input and `label`.weight: the routing logits of
  /// each token, [batch, sequence, experts].
  Value router(StringRef label, Value input, std::int64_t experts);
  Value moeGate(StringRef label, Value logits, std::int64_t topK,
                bool normalise);
  Value moeSlots(StringRef label, Value logits, std::int64_t topK);
  /// Copies tokens to their experts: [experts, batch, places, features], where
  /// `places` is an expert's capacity in tokens per sample.
  Value moeDispatch(StringRef label, Value input, Value slots,
                    std::int64_t places);
  /// Multiplies each expert's input by its matrix in `label`.weight.
  Value expertLinear(StringRef label, Value input, std::int64_t width,
                     StringRef init = "normal");
  Value moeCombine(StringRef label, Value input, Value gates, Value slots);
  /// Adds a load-balancing loss, which the step reports as `label`.
  void balanceLoss(StringRef label, Value logits, std::int64_t topK,
                   double coefficient);
  /// Multiplies `value` by one number per token: the sigmoid of the product of
  /// the input and the vector `label`.weight.
  Value tokenGate(StringRef label, Value input, Value value);
  /// Computes the mean cross entropy of `logits` over the step's targets. There
  /// is one target per token, or one per sample.
  Value loss(Value logits, std::int64_t classes);

private:
  llvm::SmallVector<mlir::Type> carried;

  /// Adds the input "count", the number of target tokens of the step.
  Value count();
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_BUILDER_H
