//===- memory_use.h - Peak memory of one rank -------------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_MEMORY_USE_H
#define MTPLAN_PLANNER_SEARCH_PRICE_MEMORY_USE_H

#include <vector>

#include "planner/search/segment/segment_plan.h"

namespace mtplan::planner {

/// Holds the peak memory of one rank of a stage, by class of values.
struct MemoryUse {
  Bytes parameters, gradients, optimizer;
  Bytes activations; ///< saved from forward to backward, all repeats
  Bytes workspace;   ///< peak of transient values in a segment, and inputs
  Bytes spare;       ///< reserved for the workspace but not used
  Bytes reserved;    ///< Device::reserved, and what the allocator caches
  Bytes limit;       ///< the device's memory
  Bytes host;        ///< offloaded state, in the host's memory
  Bytes hostLimit;   ///< the rank's share of that memory; 0: no host
  /// These are the segment and the operator at which `workspace` peaks; -1
  /// means that no value is transient.
  int peakSegment = -1, peakOp = -1;
  double cached = 0.0;     ///< FrameworkMemory::cached
  Bytes allocated() const; ///< on the device, without `spare` and `reserved`
  Bytes total() const;     ///< on the device
  /// Sets `spare` so that at least `room` bytes are reserved for the workspace.
  void reserveWorkspace(Bytes room);
  bool hostIsFull() const;
  bool fits() const; ///< on the device and on the host
};

/// Holds the peak of the transient values of one repeat of a segment.
struct RepeatWorkspace {
  /// Counts the transient values, including the values that backward recomputes
  /// and the inputs. A stage with such a repeat needs at least this workspace.
  Bytes bytes;
  /// Lists the tensors whose layouts determine `bytes`, ascending.
  std::vector<int> tensors;
};
/// Returns the workspace of one repeat with the choices of `plan`. The time is
/// proportional to the number of operators times the number of tensors of the
/// segment.
RepeatWorkspace workspaceOf(const ModelGraph &model, const SegmentPlan &plan,
                            const Setting &setting);

/// Returns how many bytes a rank may allocate, including MemoryUse::spare.
Bytes roomOf(const Setting &setting);

/// Returns the memory of one rank of a stage that runs `plans`.
MemoryUse memoryOf(const ModelGraph &model,
                   const std::vector<SegmentPlan> &plans,
                   const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_MEMORY_USE_H
