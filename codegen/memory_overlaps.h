//===- memory_overlaps.h - Which instructions share bytes -------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_MEMORY_OVERLAPS_H
#define MTPLAN_CODEGEN_MEMORY_OVERLAPS_H

#include <cstdint>
#include <vector>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

using runtime::indexed;

/// Whether two tensors are the same one in every run.
bool isSame(const runtime::Tensor &a, const runtime::Tensor &b);

/// Compares the bytes that instructions of one program of a stage read and
/// write.
class MemoryOverlaps {
public:
  /// The stage, with its schedule, must outlive the object.
  MemoryOverlaps(const runtime::Stage &theStage, int program);

  /// Whether one writes what the other reads or writes, in some run.
  bool overlap(const runtime::Instruction &a,
               const runtime::Instruction &b) const;
  /// Whether two tensors share bytes in some run. O(runs).
  bool overlap(const runtime::Tensor &a, const runtime::Tensor &b) const;

private:
  bool overlap(const std::vector<runtime::Tensor> &some,
               const std::vector<runtime::Tensor> &others) const;
  std::int64_t startOf(const runtime::Tensor &tensor, int copy,
                       int microBatch) const;

  const runtime::Stage &stage;
  std::vector<const runtime::ScheduleEntry *> runs;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_MEMORY_OVERLAPS_H
