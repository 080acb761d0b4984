//===- kernel_runs.h - Which kernels are measured, at what sizes -*- C++-*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H

#include <vector>

#include "runtime/calibration/calibration.h"

namespace mtplan::runtime {

/// A kernel and the description of its measurement, before it is timed.
struct KernelRun {
  KernelSpec spec;
  MeasuredRun run;
};

/// Returns the runs for one element type, one for each class of shapes that
/// prices distinguish: the three products of a layer's weight up, down and
/// square, of a narrow layer, of few rows, of unaligned sizes, batched; fused
/// consumers of a product or of a pass; attention with and without mask and
/// dropout; every pass of a step, activations by their function.
std::vector<KernelRun> kernelRunsOf(const CalibrationShapes &shapes,
                                    ElementType type);

/// Returns a kernel that does almost nothing.
KernelRun smallestRun();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
