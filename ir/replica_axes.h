//===- replica_axes.h - Axes over which gradients are reduced ---*- C++ -*-===//

#ifndef MTPLAN_IR_REPLICA_AXES_H
#define MTPLAN_IR_REPLICA_AXES_H

#include "llvm/ADT/StringRef.h"

namespace mtplan::ir {

/// Returns whether ranks along `axis` are data-parallel replicas, which
/// communicate only to reduce gradients and to all-gather weights under ZeRO.
inline bool isReplicaAxis(llvm::StringRef axis) {
  return axis == "dp" || axis == "zero";
}

} // namespace mtplan::ir

#endif // MTPLAN_IR_REPLICA_AXES_H
