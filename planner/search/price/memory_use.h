//===- memory_use.h - What one rank holds at the peak -----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_MEMORY_USE_H
#define MTPLAN_PLANNER_SEARCH_PRICE_MEMORY_USE_H

#include <vector>

#include "planner/search/segment/segment_plan.h"

namespace mtplan::planner {

/// Bytes that one rank holds at the peak, by class.
struct MemoryUse {
  Bytes parameters, gradients, optimizer;
  Bytes activations;   ///< saved from forward to backward, all repeats
  Bytes workspace;     ///< the peak of transient values in one segment
  Bytes spare;         ///< reserved for the workspace but not used
  Bytes reserved;      ///< context, libraries, fragmentation: see Device
  Bytes limit;         ///< the device's memory
  Bytes host;          ///< offloaded state, in the host's memory
  Bytes hostLimit;     ///< the rank's share of it; 0: not described
  Bytes total() const; ///< bytes set aside on the device
  /// Reserves at least `room` for the workspace.
  void keepRoom(Bytes room);
  /// Returns whether the host's share is too small for the offloaded state.
  bool hostIsFull() const;
  bool fits() const;
};
MemoryUse memoryOf(const ModelGraph &model,
                   const std::vector<SegmentPlan> &plans,
                   const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_MEMORY_USE_H
