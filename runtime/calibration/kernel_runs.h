//===- kernel_runs.h - Which kernels are measured, at what sizes -*- C++-*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H

#include <vector>

#include "runtime/calibration/calibration.h"

namespace mtplan::runtime {

/// A kernel and what will be said of it; its timing is still to come.
struct KernelRun {
  KernelSpec spec;
  MeasuredRun run;
};

/// Of one element type, each class of shapes that prices tell apart: the three
/// products of a layer's weight up, down and square, of a narrow layer, of few
/// rows, of unaligned sizes, batched; what may follow a product or a pass;
/// attention with a mask and without, with dropout and without; every pass of a
/// step, activations by their function.
std::vector<KernelRun> kernelRunsOf(const CalibrationShapes &shapes,
                                    ElementType type);

/// A kernel of next to nothing.
KernelRun smallestRun();

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
