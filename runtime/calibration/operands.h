//===- operands.h - What a measured kernel reads and writes -----*- C++ -*-===//

#ifndef MTPLAN_RUNTIME_CALIBRATION_OPERANDS_H
#define MTPLAN_RUNTIME_CALIBRATION_OPERANDS_H

#include <vector>

#include "runtime/backend/kernel.h"

namespace mtplan::runtime {

/// Operands and results of a kernel, several times over, filled with small
/// numbers that are no zeros; integers are below every limit.
class Operands {
public:
  /// \param spread  bytes that all copies together come to, about: at least
  ///                one copy, at most 64
  Operands(Memory &memory, const KernelSpec &spec, std::int64_t spread);

  /// Runs `kernel` on copy `number`, counted around.
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
