//===- replica_axes.h - Axes over which gradients are summed ----*- C++ -*-===//

#ifndef MTPLAN_IR_REPLICA_AXES_H
#define MTPLAN_IR_REPLICA_AXES_H

#include "llvm/ADT/StringRef.h"

namespace mtplan::ir {

/// Whether ranks along the axis are replicas of each other: layers have no
/// traffic over it, but for the weights and gradients that ZeRO splits.
inline bool isReplicaAxis(llvm::StringRef axis) {
  return axis == "dp" || axis == "zero";
}

} // namespace mtplan::ir

#endif // MTPLAN_IR_REPLICA_AXES_H
