//===- ledger.h - Every collective of a plan, and its time ------*- C++ -*-===//
//
// What is sent, how often and why, and what a step's time and memory are made
// of. Everything is read off the plans, by the prices the solver used.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_LEDGER_H
#define MTPLAN_PLANNER_SEARCH_LEDGER_H

#include <string>
#include <vector>

#include "planner/search/segment_plan.h"

namespace mtplan::planner {

enum class LedgerPhase : std::uint8_t { forward, backward, update };
const char *nameOf(LedgerPhase phase);

/// Equal collectives of one cause, counted together.
struct LedgerEntry {
  StepKind kind{};
  int axis = 0;
  Bytes bytes; ///< that one rank passes in, each time
  LedgerPhase phase{};
  std::string cause;   ///< the operator or parameter whose value it is
  std::string segment; ///< name in the chain
  std::int64_t perMicroBatch = 0; ///< of one replica; 0 for the update
  std::int64_t perStep = 0;
  Seconds time; ///< of one
};

/// In chain order, forward then backward, then the update; what recomputation
/// sends a second time is backward's. Local steps are left out. Complexity:
/// linear in the plans.
std::vector<LedgerEntry> ledgerOf(const ModelGraph &model,
                                  const std::vector<SegmentPlan> &plans,
                                  const Setting &setting);

/// Where a step's time goes, seconds, on the stage that works most; adds up to
/// `step`.
struct StepTime {
  Seconds compute;         ///< operators
  Seconds local;           ///< slices and masks
  Seconds tensor, context; ///< collectives by the axis's role
  Seconds exchange;        ///< of samples among replicas: experts
  /// Of parameters and gradients among replicas, as far as nothing else runs
  /// meanwhile.
  Seconds data;
  Seconds update;   ///< AdamW's memory traffic
  Seconds host;     ///< waiting for the host
  Seconds pipeline; ///< waiting for other stages: bubble and messages
  Seconds step;
};

/// All streams' time added up, as if nothing ran beside anything else: what the
/// strategies of a stage are chosen by.
StepTime stepTimeOf(const ModelGraph &model,
                    const std::vector<SegmentPlan> &plans,
                    const Setting &setting);

/// What one rank holds at the peak, bytes by class.
struct MemoryUse {
  Bytes parameters, gradients, optimizer;
  Bytes activations; ///< saved from forward to backward, all copies
  Bytes workspace;   ///< the most that is alive beside them within one segment
  Bytes spare;       ///< of the room kept for that, what is left over
  Bytes reserved;    ///< context, libraries, fragmentation: see the machine
  Bytes limit;       ///< the device's memory
  Bytes host;        ///< what is offloaded, in the host's memory
  Bytes hostLimit;   ///< the rank's share of that; 0: nothing is said of it
  Bytes total() const; ///< set aside on the device
  /// Keeps so much for the workspace, should it take less.
  void keepRoom(Bytes room);
  /// The host has no room for its part.
  bool hostIsFull() const;
  bool fits() const;
};
MemoryUse memoryOf(const ModelGraph &model,
                   const std::vector<SegmentPlan> &plans,
                   const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_LEDGER_H
