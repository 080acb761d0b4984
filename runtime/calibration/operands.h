//===- operands.h - Operands of measured kernels ----------------*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_OPERANDS_H
#define MTPLAN_RUNTIME_CALIBRATION_OPERANDS_H

#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

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

#endif // MTPLAN_RUNTIME_CALIBRATION_OPERANDS_H
