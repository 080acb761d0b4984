//===- pipelines.h - From a partitioned step to a placed one ----*- C++ -*-===//

#ifndef MTPLAN_PASSES_PIPELINES_H
#define MTPLAN_PASSES_PIPELINES_H

#include "mlir/Pass/PassManager.h"

namespace mtplan::passes {

struct PlacementOptions {
  /// Bytes of an accumulator's element where the gradient's is narrower, or 0
  /// for the gradient's own.
  int gradientBytes = 0;
  /// If several segments of a stage use a weight, each one that does not repeat
  /// has a gradient accumulator of its own.
  bool sumsPerUse = false;
  /// Gradients are reduced beside the backward.
  bool overlapsReductions = false;
  /// The host holds the optimizer's state and updates it.
  bool offloads = false;
};

/// Appends passes/fuse, the rest of passes/schedule and passes/memory, each
/// stage with its gate, for a partitioned module that has tasks.
void buildPlacement(mlir::OpPassManager &manager,
                    const PlacementOptions &options);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_PIPELINES_H
