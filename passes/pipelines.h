//===- pipelines.h - From a partitioned step to a placed one ----*- C++ -*-===//

#ifndef MTPLAN_PASSES_PIPELINES_H
#define MTPLAN_PASSES_PIPELINES_H

#include "mlir/Pass/PassManager.h"

namespace mtplan::passes {

struct PlacementOptions {
  /// Holds the minimum bytes per element of a gradient accumulator, or 0 for
  /// the type of the gradient.
  int gradientBytes = 0;
  /// Says whether each segment that does not repeat has its own gradient
  /// accumulator for a weight that several segments of a stage use.
  bool sumsPerUse = false;
  /// Says whether gradient reductions overlap with the backward pass.
  bool overlapsReductions = false;
  /// Says whether the weights of a run are gathered while the previous run
  /// computes (ZeRO 3).
  bool gathersAhead = false;
  /// Says whether the host holds and updates the optimizer state.
  bool offloads = false;
};

/// Appends the passes of fuse/, the remaining passes of schedule/, and memory/,
/// with their verification passes. The module must be partitioned and have
/// tasks.
void buildPlacement(mlir::OpPassManager &manager,
                    const PlacementOptions &options);

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_PIPELINES_H
