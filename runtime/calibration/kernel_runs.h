//===- kernel_runs.h - Kernels that are measured ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H

#include <vector>

#include "runtime/backend/kernel.h"
#include "runtime/calibration/calibration.h"

namespace mtplan::runtime {

struct KernelRun {
  KernelSpec spec;
  MeasuredRun run;
};

/// Returns the runs for one element type, at least one for each class of shapes
/// that the cost model distinguishes. The matrices of a layer's products
/// (forward, input gradient, weight gradient) are wide, square, narrow,
/// unaligned or batched, or have few rows. Attention runs with and without
/// causal mask and dropout. Each activation function is among the memory-bound
/// kernels and among the fused consumers.
std::vector<KernelRun> kernelRunsOf(const CalibrationShapes &shapes,
                                    ElementType type);

/// Returns a kernel that does almost nothing, to measure launches.
KernelRun smallestRun();

/// Holds several copies of a kernel's operands and results. A Pattern fills the
/// operands; its integers, 0 to 511, serve as token ids.
class Operands {
public:
  /// \param spread  approximate bytes of all copies together; the number of
  /// copies is between 1 and 64
  Operands(Memory &memory, const KernelSpec &spec, std::int64_t spread);

  /// Runs `kernel` on copy `number` modulo the number of copies.
  void run(Kernel &kernel, std::int64_t number);

private:
  struct Copy {
    std::vector<const void *> inputs;
    std::vector<void *> outputs;
  };

  Allocation space, step; ///< memory of `copies`, and of the StepNumbers
  std::vector<Copy> copies;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
