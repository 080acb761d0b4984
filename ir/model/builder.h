//===- builder.h - Builds a model from operators ----------------*- C++ -*-===//
//
// A thin layer over OpBuilder. Shapes follow from the operands, and parameters
// are named after the operator that uses them (`label`.weight, `label`.bias).
// Activations are [batch, sequence, features], weights are [in, out].
// moe_builder.cpp holds the experts.
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
  ModelBuilder(mlir::MLIRContext &context, llvm::StringRef fileName,
               mlir::Type activationType);

  mlir::OpBuilder ops;
  mlir::Location location;
  mlir::Type element; ///< of activations and parameters
  mlir::OwningOpRef<mlir::ModuleOp> module;

  /// Starts a segment; its arguments are what the previous one yielded.
  mlir::ValueRange beginSegment(llvm::StringRef name, std::int64_t repeat = 1,
                                std::int64_t first = 0);
  /// Ends the segment, which yields `values`.
  void endSegment(mlir::ValueRange values);
  /// Ends the last segment: reports `loss` and yields nothing.
  void endChain(mlir::Value loss);

  mlir::RankedTensorType tensor(llvm::ArrayRef<std::int64_t> shape) const {
    return mlir::RankedTensorType::get(shape, element);
  }
  /// Adds an input [batch, sequence] of token numbers below `limit`.
  mlir::Value tokens(llvm::StringRef label, std::int64_t sequence,
                     std::int64_t limit);
  /// Adds an input [batch, sequence, width] of numbers.
  mlir::Value features(llvm::StringRef label, std::int64_t sequence,
                       std::int64_t width);
  /// \param unpadded  the shape without padding; empty if there is none
  mlir::Value parameter(const llvm::Twine &label,
                        llvm::ArrayRef<std::int64_t> shape,
                        llvm::StringRef init,
                        llvm::ArrayRef<std::int64_t> unpadded = {});

  /// Looks up rows of `table` or, without one, of `label`.weight [rows, width].
  mlir::Value embedding(llvm::StringRef label, mlir::Value ids, Padded rows,
                        std::int64_t width, llvm::StringRef table = "");
  mlir::Value positions(llvm::StringRef label, mlir::Value input,
                        std::int64_t rows);
  /// Multiplies the input by `label`.weight and adds `label`.bias if `bias`.
  mlir::Value linear(llvm::StringRef label, mlir::Value input,
                     std::int64_t width, bool bias,
                     llvm::StringRef init = "normal");
  /// Computes logits: the input times the transposed table `weight`
  /// [vocabulary, in] or, without one, times `label`.weight [in, vocabulary].
  mlir::Value logits(llvm::StringRef label, mlir::Value input,
                     Padded vocabulary, llvm::StringRef table, bool bias);
  mlir::Value layerNorm(llvm::StringRef label, mlir::Value input,
                        double epsilon);
  mlir::Value rmsNorm(llvm::StringRef label, mlir::Value input, double epsilon);
  mlir::Value activation(llvm::StringRef label, Activation kind,
                         mlir::Value input);
  mlir::Value swiglu(llvm::StringRef label, mlir::Value gate, mlir::Value up);
  mlir::Value add(llvm::StringRef label, mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(llvm::StringRef label, mlir::Value lhs, mlir::Value rhs);
  mlir::Value scale(llvm::StringRef label, mlir::Value input, double factor);
  /// Puts `label`.weight at the first position and `input` at the others.
  mlir::Value putFirst(llvm::StringRef label, mlir::Value input);
  /// `input` itself if `cap` is 0.
  mlir::Value softcap(llvm::StringRef label, mlir::Value input, double cap);
  /// Returns the first position: [batch, features].
  mlir::Value takeFirst(llvm::StringRef label, mlir::Value input);
  /// Returns `input` itself if `rate` is 0.
  mlir::Value dropout(llvm::StringRef label, mlir::Value input, double rate);
  mlir::Value rope(llvm::StringRef label, mlir::Value input,
                   std::int64_t headDim, std::int64_t rotaryDim, double theta,
                   bool interleaved);
  mlir::Value attention(llvm::StringRef label, mlir::Value query,
                        mlir::Value key, mlir::Value value,
                        std::int64_t headDim, bool causal, double scale,
                        double rate, mlir::Value bias = {},
                        std::int64_t maxDistance = 0, double softcap = 0.0);
  /// Computes a token's logits for each of `experts`: the input times
  /// `label`.weight.
  mlir::Value router(llvm::StringRef label, mlir::Value input,
                     std::int64_t experts);
  mlir::Value moeGate(llvm::StringRef label, mlir::Value logits,
                      std::int64_t topK, bool normalise);
  mlir::Value moeSlots(llvm::StringRef label, mlir::Value logits,
                       std::int64_t topK);
  /// Moves tokens to the `places` slots of each expert: [experts, batch,
  /// places, ...].
  mlir::Value moeDispatch(llvm::StringRef label, mlir::Value input,
                          mlir::Value slots, std::int64_t places);
  /// Multiplies each expert's input by its matrix in `label`.weight.
  mlir::Value expertLinear(llvm::StringRef label, mlir::Value input,
                           std::int64_t width, llvm::StringRef init = "normal");
  mlir::Value moeCombine(llvm::StringRef label, mlir::Value input,
                         mlir::Value gates, mlir::Value slots);
  /// Reports the loss under its own label and adds it to the step's loss.
  void balanceLoss(llvm::StringRef label, mlir::Value logits, std::int64_t topK,
                   double coefficient);
  /// Multiplies `value` by one number per token, sigmoid(input times the vector
  /// `label`.weight).
  mlir::Value tokenGate(llvm::StringRef label, mlir::Value input,
                        mlir::Value value);
  /// Computes the cross entropy of `logits`, the mean over the step's targets:
  /// one per token, or one per sample.
  mlir::Value loss(mlir::Value logits, std::int64_t classes);

private:
  llvm::SmallVector<mlir::Type> carried;

  /// Returns the number of target tokens of the step.
  mlir::Value count();
};

/// Returns the sizes of a ranked tensor.
llvm::ArrayRef<std::int64_t> shapeOf(mlir::Value value);

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_BUILDER_H
