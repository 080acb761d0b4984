//===- mtp.h - The dialect, as C++ ------------------------------*- C++ -*-===//
//
// Everything generated from mtp_ops.td, in the order its parts need each other.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_MTP_H
#define MTPLAN_IR_MTP_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/factor_rule.h"
#include "ir/gradient.h"

namespace mtplan::ir {
class BackwardOp;
class YieldOp;

/// Bytes of all tensor operands and results, each value counted once.
std::int64_t bytesOfUses(mlir::Operation *op);

/// Names of the module attributes.
inline constexpr llvm::StringLiteral kMeshAttrName = "mtp.mesh";
inline constexpr llvm::StringLiteral kStrategyAttrName = "mtp.strategy";
/// Set, as a unit, once shapes are those of one rank.
inline constexpr llvm::StringLiteral kPartitionedAttrName = "mtp.partitioned";
/// Number of pipeline stages that the chunks of segments are dealt out to.
inline constexpr llvm::StringLiteral kStagesAttrName = "mtp.stages";
/// The mesh axis whose ranks are the stages, once a step is split over them.
inline constexpr llvm::StringLiteral kStageAxis = "pp";
/// Layers of the model, for the scale of `residual` initialisation.
inline constexpr llvm::StringLiteral kLayersAttrName = "mtp.layers";
/// By stage, what it does in order, three numbers a task: 0 forward or 1
/// backward, the chunk of the model, the micro-batch.
inline constexpr llvm::StringLiteral kTasksAttrName = "mtp.tasks";
/// Per step.
inline constexpr llvm::StringLiteral kMicroBatchesAttrName =
    "mtp.micro_batches";
/// Of an operation: where its results lie; of a segment or a backward half, its
/// arguments; of mtp.accumulate, the accumulator; of mtp.store, the parameter.
inline constexpr llvm::StringLiteral kPlacesAttrName = "mtp.places";
/// Of mtp.adamw: the parameter, both moments and, if there is one, the master.
inline constexpr llvm::StringLiteral kStateAttrName = "mtp.state";
/// Of an operation of the update: the copies of its parameter's segment that it
/// runs for, the first counted from the segment's first, and how many.
inline constexpr llvm::StringLiteral kCopiesAttrName = "mtp.copies";
} // namespace mtplan::ir

#include "ir/mtp_dialect.h.inc"
#include "ir/mtp_enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/mtp_attrs.h.inc"
#include "ir/mtp_interfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/mtp_ops.h.inc"

#endif // MTPLAN_IR_MTP_H
