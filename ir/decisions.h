//===- decisions.h - How a partitioned step is to run -----------*- C++ -*-===//
//
// The attributes by which passes/fuse and passes/schedule say what runs as one
// kernel, on which stream, and what begins a sum. passes/memory places tensors
// accordingly and codegen/ copies the decisions into the executable plan.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_DECISIONS_H
#define MTPLAN_IR_DECISIONS_H

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/mtp.h"

namespace mtplan::ir {

/// A string: the operation runs in one instruction with the operation right
/// before it, as its epilogue or, for a sum, beside it as a bias's gradient.
inline constexpr llvm::StringLiteral kFusedAttrName = "mtp.fused";
inline constexpr llvm::StringLiteral kEpilogue = "epilogue";
inline constexpr llvm::StringLiteral kBiasGradient = "bias_gradient";

inline bool isFused(mlir::Operation *op) { return op->hasAttr(kFusedAttrName); }

inline bool isFusedAs(mlir::Operation *op, llvm::StringRef kind) {
  auto fused = op->getAttrOfType<mlir::StringAttr>(kFusedAttrName);
  return fused && fused.getValue() == kind;
}

/// Returns the first operation of the instruction that `op` runs in, which may
/// be `op` itself.
inline mlir::Operation *fusionHeadOf(mlir::Operation *op) {
  while (isFused(op) && op->getPrevNode())
    op = op->getPrevNode();
  return op;
}

/// Returns the epilogue of `op`, or null.
inline mlir::Operation *epilogueOf(mlir::Operation *op) {
  mlir::Operation *next = op->getNextNode();
  return next && isFusedAs(next, kEpilogue) ? next : nullptr;
}

/// On mtp.accumulate: the micro-batch in which it stores its term instead of
/// adding it, and, where only one copy of its segment does so, that copy's
/// number in the model.
inline constexpr llvm::StringLiteral kFirstTermAttrName = "mtp.first_term";

/// A unit attribute on mtp.accumulate: the segment has an accumulator of its
/// own for a weight that other segments use, too.
inline constexpr llvm::StringLiteral kOwnSumAttrName = "mtp.own_sum";

/// A number: operations of one program with the same number, and the operations
/// that are fused with them, are one launch: a batched product, a group of
/// collectives, or a multi-tensor update.
inline constexpr llvm::StringLiteral kBatchAttrName = "mtp.batch";

/// Returns the number of the launch that `op` belongs to, or -1.
inline std::int64_t batchOf(mlir::Operation *op) {
  auto batch = op->getAttrOfType<mlir::IntegerAttr>(kBatchAttrName);
  return batch ? batch.getInt() : -1;
}

/// A string on a reduction of mtp.update: the segment whose backward program
/// runs the reduction, in the last micro-batch only. Later programs do not wait
/// for it.
inline constexpr llvm::StringLiteral kOverlappedAttrName = "mtp.overlapped";

inline bool isOverlapped(mlir::Operation *op) {
  return op->hasAttr(kOverlappedAttrName);
}

/// A string: the stream that the operation runs on.
inline constexpr llvm::StringLiteral kStreamAttrName = "mtp.stream";

/// Streams in the order in which a plan lists those that it uses: kernels,
/// collectives between ranks that share layers, collectives between replicas,
/// messages between stages, gradients on their way to the host, the host's own
/// kernels, and weights on their way back.
inline constexpr std::array<std::string_view, 7> kStreams = {
    "compute", "tensor", "data", "pipeline", "down", "host", "up"};

} // namespace mtplan::ir

#endif // MTPLAN_IR_DECISIONS_H
