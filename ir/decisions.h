//===- decisions.h - Execution decisions as IR attributes -------*- C++ -*-===//
//
// passes/fuse and passes/schedule record in these attributes which operations
// run as one kernel, on which stream each runs, and which micro-batch starts a
// gradient sum. passes/memory assigns offsets accordingly, and codegen/ copies
// the decisions into the executable plan.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_DECISIONS_H
#define MTPLAN_IR_DECISIONS_H

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/mtp.h"

namespace mtplan::ir {

/// Names a string attribute: the operation is fused into the operation right
/// before it, either as an epilogue or, if the operation is a sum over tokens,
/// as a bias gradient.
inline constexpr llvm::StringLiteral kFusedAttrName = "mtp.fused";
inline constexpr llvm::StringLiteral kEpilogue = "epilogue";
inline constexpr llvm::StringLiteral kBiasGradient = "bias_gradient";

inline bool isFused(mlir::Operation *op) { return op->hasAttr(kFusedAttrName); }

inline bool isFusedAs(mlir::Operation *op, llvm::StringRef kind) {
  auto fused = op->getAttrOfType<mlir::StringAttr>(kFusedAttrName);
  return fused && fused.getValue() == kind;
}

inline mlir::Operation *fusionHeadOf(mlir::Operation *op) {
  while (isFused(op) && op->getPrevNode())
    op = op->getPrevNode();
  return op;
}

inline mlir::Operation *epilogueOf(mlir::Operation *op) {
  mlir::Operation *next = op->getNextNode();
  return next && isFusedAs(next, kEpilogue) ? next : nullptr;
}

/// Names an array attribute of mtp.accumulate. Its first element is the
/// micro-batch whose term overwrites the accumulator instead of being added. If
/// only the term of one repeated layer overwrites the accumulator, the second
/// element is the number of this layer in the model.
inline constexpr llvm::StringLiteral kFirstTermAttrName = "mtp.first_term";

/// Names a unit attribute of mtp.accumulate. With the attribute, the segment
/// has its own accumulator for a weight that other segments use, too.
inline constexpr llvm::StringLiteral kOwnSumAttrName = "mtp.own_sum";

/// Names an integer attribute. Operations of one program with the same number,
/// and the operations fused with them, form one launch: a batched product, a
/// group of collectives, or a multi-tensor update.
inline constexpr llvm::StringLiteral kBatchAttrName = "mtp.batch";

inline std::int64_t batchOf(mlir::Operation *op) {
  auto batch = op->getAttrOfType<mlir::IntegerAttr>(kBatchAttrName);
  return batch ? batch.getInt() : -1;
}

/// Names a unit attribute of a segment's collective. The collective moves a
/// weight of the segment or the weight's gradient (ZeRO 3), in one launch with
/// the collectives of the segment's other weights.
inline constexpr llvm::StringLiteral kOfBlockAttrName = "mtp.of_block";

inline bool isOfBlock(mlir::Operation *op) {
  return op->hasAttr(kOfBlockAttrName);
}

/// Names a unit attribute of a block's all-gather. The previous run, which is
/// of another layer or segment, executes the all-gather. A program before the
/// first run of a task gathers the weights of that run.
inline constexpr llvm::StringLiteral kAheadAttrName = "mtp.ahead";

inline bool isAhead(mlir::Operation *op) { return op->hasAttr(kAheadAttrName); }

/// Names a string attribute of a reduction in mtp.update. The value is the
/// segment whose backward program runs the reduction, in the last micro-batch
/// only. Later programs do not wait for the reduction.
inline constexpr llvm::StringLiteral kOverlappedAttrName = "mtp.overlapped";

inline bool isOverlapped(mlir::Operation *op) {
  return op->hasAttr(kOverlappedAttrName);
}

/// Names a string attribute, whose value is the stream that the operation runs
/// on.
inline constexpr llvm::StringLiteral kStreamAttrName = "mtp.stream";

/// Lists all streams, in the order in which a plan numbers the streams that it
/// uses. In this order, the streams run kernels, collectives within a replica
/// (tensor, context and expert parallelism), collectives between data-parallel
/// replicas, messages between stages, copies of gradients to the host, kernels
/// of the host, and copies of weights back to the device.
inline constexpr std::array<std::string_view, 7> kStreams = {
    "compute", "tensor", "data", "pipeline", "down", "host", "up"};

} // namespace mtplan::ir

#endif // MTPLAN_IR_DECISIONS_H
