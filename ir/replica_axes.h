//===- replica_axes.h - Axes over which gradients are reduced ---*- C++ -*-===//

#ifndef MTPLAN_IR_REPLICA_AXES_H
#define MTPLAN_IR_REPLICA_AXES_H

#include "llvm/ADT/StringRef.h"

namespace mtplan::ir {

/// Returns whether ranks along the axis are replicas of each other: layers
/// communicate over it only for weights and gradients that ZeRO shards.
inline bool isReplicaAxis(llvm::StringRef axis) {
  return axis == "dp" || axis == "zero";
}

} // namespace mtplan::ir

#endif // MTPLAN_IR_REPLICA_AXES_H
