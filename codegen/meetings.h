//===- meetings.h - Who touches what another touches ------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_MEETINGS_H
#define MTPLAN_CODEGEN_MEETINGS_H

#include <cstdint>
#include <vector>

#include "runtime/plan/index.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

using runtime::indexed;

/// Whether two tensors are one and the same in every run.
bool isSame(const runtime::Tensor &a, const runtime::Tensor &b);

/// Of instructions of one program of a stage, by the bytes they read and write.
class Meetings {
public:
  /// The stage, with its schedule, has to outlive it.
  Meetings(const runtime::Stage &theStage, int program);

  /// Whether one writes what the other reads or writes, in some run.
  bool meet(const runtime::Instruction &a, const runtime::Instruction &b) const;
  /// Whether two tensors share bytes in some run. O(runs).
  bool meet(const runtime::Tensor &a, const runtime::Tensor &b) const;

private:
  bool meet(const std::vector<runtime::Tensor> &some,
            const std::vector<runtime::Tensor> &others) const;
  std::int64_t startOf(const runtime::Tensor &tensor, int copy,
                       int microBatch) const;

  const runtime::Stage &stage;
  std::vector<const runtime::ScheduleEntry *> runs;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_MEETINGS_H
