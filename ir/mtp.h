//===- mtp.h - The dialect in C++ -------------------------------*- C++ -*-===//
//
// Includes everything generated from mtp_ops.td, in the order of its
// dependencies.
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

#include "ir/cost_class.h"
#include "ir/factor_rule.h"
#include "ir/gradient.h"

namespace mtplan::ir {
class BackwardOp;
class YieldOp;

/// Counts the bytes of all tensor operands and results, each value once.
std::int64_t bytesOfUses(mlir::Operation *op);

/// Names of the module's attributes.
inline constexpr llvm::StringLiteral kMeshAttrName = "mtp.mesh";
inline constexpr llvm::StringLiteral kStrategyAttrName = "mtp.strategy";
/// A unit attribute that is set once shapes are those of one rank.
inline constexpr llvm::StringLiteral kPartitionedAttrName = "mtp.partitioned";
/// Number of pipeline stages over which the chunks of segments are distributed.
inline constexpr llvm::StringLiteral kStagesAttrName = "mtp.stages";
/// The mesh axis whose ranks are the pipeline stages, once a step is split over
/// them.
inline constexpr llvm::StringLiteral kStageAxis = "pp";
/// Layers of the model, for the scale of `residual` initialisation.
inline constexpr llvm::StringLiteral kLayersAttrName = "mtp.layers";
/// The tasks of each stage in order, three numbers per task: 0 for forward or 1
/// for backward, the chunk of the model, and the micro-batch.
inline constexpr llvm::StringLiteral kTasksAttrName = "mtp.tasks";
/// Number of micro-batches per step.
inline constexpr llvm::StringLiteral kMicroBatchesAttrName =
    "mtp.micro_batches";
/// The places of an operation's results; of the arguments of a segment or a
/// backward half; of the accumulator of mtp.accumulate; of the parameter of
/// mtp.store.
inline constexpr llvm::StringLiteral kPlacesAttrName = "mtp.places";
/// The places of mtp.adamw: the parameter, both moments and, if there is one,
/// the master.
inline constexpr llvm::StringLiteral kStateAttrName = "mtp.state";
/// The layers for which an operation of the update runs: the first, counted
/// from the first layer of the segment, and how many.
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
