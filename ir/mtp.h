//===- mtp.h - The dialect in C++ -------------------------------*- C++ -*-===//
//
// Includes everything that is generated from mtp_ops.td, and defines the names
// of discardable attributes and of mesh axes.
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

#include "ir/compute_op.h"

namespace mtplan::ir {
class BackwardOp;
class YieldOp;

/// Names the module attribute that holds the mesh, a MeshAttr.
inline constexpr llvm::StringLiteral kMeshAttrName = "mtp.mesh";
/// Names the operator attribute that holds the strategy, a StrategyAttr.
inline constexpr llvm::StringLiteral kStrategyAttrName = "mtp.strategy";
/// Names the unit attribute that marks modules with the shapes of one rank.
inline constexpr llvm::StringLiteral kPartitionedAttrName = "mtp.partitioned";
/// Names the attribute with the number of pipeline stages over which the chunks
/// of segments are distributed.
inline constexpr llvm::StringLiteral kStagesAttrName = "mtp.stages";
/// Names the mesh axis whose coordinates are the pipeline stages, in a module
/// that is split over stages.
inline constexpr llvm::StringLiteral kStageAxis = "pp";
/// Names the attribute with the number of layers of the model, which scales
/// `residual` initialisation.
inline constexpr llvm::StringLiteral kLayersAttrName = "mtp.layers";
/// Names the attribute with the tasks of each stage in order, three numbers per
/// task: 0 for forward or 1 for backward, the virtual stage, and the
/// micro-batch.
inline constexpr llvm::StringLiteral kTasksAttrName = "mtp.tasks";
inline constexpr llvm::StringLiteral kMicroBatchesAttrName =
    "mtp.micro_batches";
/// Names an array attribute with a PlaceAttr (arena and offsets) per tensor:
/// the results of an operation, the arguments of a segment or a backward half,
/// the accumulator of mtp.accumulate, or the parameter of mtp.store.
inline constexpr llvm::StringLiteral kPlacesAttrName = "mtp.places";
/// Names an array attribute of PlaceAttr. On mtp.adamw, the array holds the
/// parameter, both moments and, if the master weights are stored separately,
/// the master weights. If the host runs the update, the host's buffer of the
/// gradient follows. If the type of the weight also differs from that of the
/// master weights, the last element is the host's buffer of the weight. On
/// mtp.accumulated, the array holds the gradient's other accumulators.
inline constexpr llvm::StringLiteral kStateAttrName = "mtp.state";
/// Names the attribute with the layers that an operation of the update covers.
/// The attribute's two numbers are the first layer, relative to the first layer
/// of the segment, and the number of layers.
inline constexpr llvm::StringLiteral kCopiesAttrName = "mtp.copies";
/// Names the attribute with the number of the update program that contains an
/// operation. Programs are counted separately before and after the gradient
/// norm. A program covers the same layers of all its parameters.
inline constexpr llvm::StringLiteral kUpdateProgramAttrName =
    "mtp.update_program";

/// Returns whether ranks along `axis` are data-parallel replicas, which reduce
/// gradients and, under ZeRO, all-gather weights.
inline bool isReplicaAxis(llvm::StringRef axis) {
  return axis == "dp" || axis == "zero";
}
} // namespace mtplan::ir

#include "ir/mtp_dialect.h.inc"
#include "ir/mtp_enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/mtp_attrs.h.inc"
#include "ir/mtp_interfaces.h.inc"

#define GET_OP_CLASSES
#include "ir/mtp_ops.h.inc"

namespace mtplan::ir {

MeshAttr meshOf(mlir::Operation *op);

/// Returns the mtp.adamw from whose result the operation `op` of an update
/// computes, or `op` itself if it is an mtp.adamw. Returns null if `op`
/// processes gradients.
AdamwOp updatedBy(mlir::Operation *op);

inline bool isUpdated(mlir::Operation *op) { return updatedBy(op) != nullptr; }

} // namespace mtplan::ir

#endif // MTPLAN_IR_MTP_H
