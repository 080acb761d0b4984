//===- ledger.h - Every collective of a plan, and its time ------*- C++ -*-===//
//
// Lists the collectives of a plan with their sizes, counts and causes, and adds
// up the time of a step. Every number is read off the plan with the prices that
// the solver used.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_LEDGER_H
#define MTPLAN_PLANNER_SEARCH_PRICE_LEDGER_H

#include <string>
#include <vector>

#include "planner/search/segment/segment_plan.h"

namespace mtplan::planner {

enum class LedgerPhase : std::uint8_t { forward, backward, update };
const char *nameOf(LedgerPhase phase);

/// Equal collectives of one cause, counted together.
struct LedgerEntry {
  StepKind kind{};
  int axis = 0;
  Bytes bytes; ///< passed in by one rank, each time
  LedgerPhase phase{};
  std::string cause;   ///< the operator or parameter that owns the value
  std::string segment; ///< its name in the chain
  std::int64_t perMicroBatch = 0; ///< per replica; 0 for the update
  std::int64_t perStep = 0;
  Seconds time; ///< of one collective
};

/// Returns the collectives in chain order: forward, backward, update.
/// Collectives of recomputation belong to backward; local steps are left out.
/// Complexity: linear in the plans.
std::vector<LedgerEntry> ledgerOf(const ModelGraph &model,
                                  const std::vector<SegmentPlan> &plans,
                                  const Setting &setting);

/// Seconds of one step on the busiest stage, by cause; they add up to `step`.
struct StepTime {
  Seconds compute;         ///< operators
  Seconds local;           ///< slices and masks
  Seconds tensor, context; ///< collectives by the axis's role
  Seconds exchange;        ///< of samples between replicas: expert parallelism
  /// Parameters and gradients between replicas, where it is exposed.
  Seconds data;
  Seconds update;   ///< AdamW's memory traffic
  Seconds host;     ///< exposed time of the host
  Seconds pipeline; ///< exposed time of other stages: bubble, messages
  Seconds step;
};

/// Returns the times of all streams added up, as if nothing overlapped.
/// Strategies of a stage minimise this sum.
StepTime stepTimeOf(const ModelGraph &model,
                    const std::vector<SegmentPlan> &plans,
                    const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_LEDGER_H
