//===- kernel_runs.h - Kernels that are measured ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
#define MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H

#include <vector>

#include "runtime/backend/kernel.h"
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

/// Several copies of a kernel's operands and results, filled with small numbers
/// that are not zero; integers are below every limit.
class Operands {
public:
  /// \param spread  approximate bytes of all copies together; there are 1 to 64
  /// copies
  Operands(Memory &memory, const KernelSpec &spec, std::int64_t spread);

  /// Runs `kernel` on copy `number`, modulo the number of copies.
  void run(Kernel &kernel, std::int64_t number);

private:
  struct Copy {
    std::vector<const void *> inputs;
    std::vector<void *> outputs;
  };

  Allocation space, step; ///< `step` holds the step's numbers
  std::vector<Copy> copies;
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_CALIBRATION_KERNEL_RUNS_H
