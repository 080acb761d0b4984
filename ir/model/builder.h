//===- builder.h - Builds a model from operators ----------------*- C++ -*-===//
//
// A thin layer over OpBuilder. Shapes follow from the operands, and parameters
// are named after the operator that uses them (`label`.weight, `label`.bias).
// Activations are [batch, sequence, features], weights are [in, out].
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

/// The stored rows of a table or columns of a weight, and how many of them are
/// not padding.
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
  mlir::Type element; ///< of activations and parameters
  mlir::OwningOpRef<mlir::ModuleOp> module;

  /// Starts a segment; its arguments are what the previous one yielded.
  mlir::ValueRange beginSegment(StringRef name, std::int64_t repeat = 1,
                                std::int64_t first = 0);
  /// Ends the segment, which yields `values`.
  void endSegment(mlir::ValueRange values);
  /// Ends the last segment: reports `loss` and yields nothing.
  void endChain(Value loss);

  mlir::RankedTensorType tensor(llvm::ArrayRef<std::int64_t> shape) const {
    return mlir::RankedTensorType::get(shape, element);
  }
  /// Adds an input [batch, sequence] of token numbers below `limit`.
  Value tokens(StringRef label, std::int64_t sequence, std::int64_t limit);
  /// Adds an input [batch, sequence, width] of numbers.
  Value features(StringRef label, std::int64_t sequence, std::int64_t width);
  /// Adds a parameter.
  /// \param unpadded  the shape without padding; empty if there is none
  Value parameter(const llvm::Twine &label, llvm::ArrayRef<std::int64_t> shape,
                  StringRef init, llvm::ArrayRef<std::int64_t> unpadded = {});

  /// Looks up rows of `table` or, without one, of `label`.weight [rows, width].
  Value embedding(StringRef label, Value ids, Padded rows, std::int64_t width,
                  StringRef table = "");
  Value positions(StringRef label, Value input, std::int64_t rows);
  /// Multiplies the input by `label`.weight and adds `label`.bias if `bias`.
  Value linear(StringRef label, Value input, std::int64_t width, bool bias,
               StringRef init = "normal");
  /// Computes logits: the input times the transposed table `weight`
  /// [vocabulary, in] or, without one, times `label`.weight [in, vocabulary].
  Value logits(StringRef label, Value input, Padded vocabulary, StringRef table,
               bool bias);
  Value layerNorm(StringRef label, Value input, double epsilon);
  Value rmsNorm(StringRef label, Value input, double epsilon);
  Value activation(StringRef label, Activation kind, Value input);
  Value swiglu(StringRef label, Value gate, Value up);
  Value add(StringRef label, Value lhs, Value rhs);
  Value mul(StringRef label, Value lhs, Value rhs);
  Value scale(StringRef label, Value input, double factor);
  /// Puts `label`.weight at the first position and `input` at the others.
  Value putFirst(StringRef label, Value input);
  /// Returns `input` itself if `cap` is 0.
  Value softcap(StringRef label, Value input, double cap);
  /// Returns the first position: [batch, features].
  Value takeFirst(StringRef label, Value input);
  /// Returns `input` itself if `rate` is 0.
  Value dropout(StringRef label, Value input, double rate);
  Value rope(StringRef label, Value input, std::int64_t headDim,
             std::int64_t rotaryDim, double theta, bool interleaved);
  Value attention(StringRef label, Value query, Value key, Value value,
                  std::int64_t headDim, bool causal, double scale, double rate,
                  Value bias = {}, std::int64_t maxDistance = 0,
                  double softcap = 0.0);
  /// Computes a token's logits for each of `experts`: the input times
  /// `label`.weight.
  Value router(StringRef label, Value input, std::int64_t experts);
  Value moeGate(StringRef label, Value logits, std::int64_t topK,
                bool normalise);
  Value moeSlots(StringRef label, Value logits, std::int64_t topK);
  /// Moves tokens to the `places` slots of each expert: [experts, batch,
  /// places, ...].
  Value moeDispatch(StringRef label, Value input, Value slots,
                    std::int64_t places);
  /// Multiplies each expert's input by its matrix in `label`.weight.
  Value expertLinear(StringRef label, Value input, std::int64_t width,
                     StringRef init = "normal");
  Value moeCombine(StringRef label, Value input, Value gates, Value slots);
  /// Reports the loss under its own label and adds it to the step's loss.
  void balanceLoss(StringRef label, Value logits, std::int64_t topK,
                   double coefficient);
  /// Multiplies `value` by one number per token, sigmoid(input times the vector
  /// `label`.weight).
  Value tokenGate(StringRef label, Value input, Value value);
  /// Computes the cross entropy of `logits`, the mean over the step's targets:
  /// one per token, or one per sample.
  Value loss(Value logits, std::int64_t classes);

private:
  llvm::SmallVector<mlir::Type> carried;

  /// Returns the number of target tokens of the step.
  Value count();
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_BUILDER_H
