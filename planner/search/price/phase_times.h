//===- phase_times.h - Times and collectives, by phase ----------*- C++ -*-===//
//
// The times of one repeat are the numbers that a simulated step is made of.
// Collectives that move parameters or gradients between replicas are kept
// apart, because they can overlap compute. All others run between two operators
// and belong to the phase.
//
// The ledger lists the collectives of a plan with their sizes, counts and
// causes. Every number is read off the plan with the prices that the solver
// used.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_PHASE_TIMES_H
#define MTPLAN_PLANNER_SEARCH_PRICE_PHASE_TIMES_H

#include <map>
#include <string>
#include <vector>

#include "planner/cost/op_run.h"
#include "planner/search/segment/segment_plan.h"

namespace mtplan::planner {

/// The time of one phase, by cause.
struct PhaseParts {
  Seconds compute;         ///< operators
  Seconds local;           ///< slices and masks
  Seconds tensor, context; ///< collectives by the axis's role
  Seconds exchange;        ///< of samples between replicas: expert parallelism
  Seconds total() const {
    return compute + local + tensor + context + exchange;
  }
};

/// Times of one repeat, per micro-batch unless a comment says otherwise.
struct PhaseTimes {
  PhaseParts forward, backward;
  Seconds weightGradient; ///< the part of backward that only accumulators need
  Seconds gatherForward, gatherBackward; ///< of parameters, over replicas
  Seconds reduce;     ///< of gradients, over replicas, each micro-batch
  Seconds reduceStep; ///< of gradients, once a step
  Seconds gatherStep; ///< of parameters, once a step
  Seconds update;     ///< AdamW on the device, once a step, with `squares`
  Seconds squares;    ///< the gradient norm's part of `update`
  HostTimes host;     ///< the offloaded part of the update, once a step
};

/// Returns the time of operator `o`, executed once.
Seconds operatorTime(const SegmentGraph &segment, const SegmentPlan &plan,
                     std::size_t o, const OpRun &run, const Setting &setting);

/// Returns the times of one repeat of `plan`.
/// \param paid  by parameter: shared parameters that an earlier run has reduced
/// and updated; the call adds this run's
PhaseTimes phaseTimesOf(const ModelGraph &model, const SegmentPlan &plan,
                        const Setting &setting, std::vector<bool> &paid);

/// Returns compute times by Op::kind of one repeat and micro-batch,
/// recomputation included. A fused consumer counts as its producer's kind;
/// adding to gradient accumulators counts as "accumulate".
std::map<std::string, Seconds> kindTimesOf(const ModelGraph &model,
                                           const SegmentPlan &plan,
                                           const Setting &setting);

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
  /// Adds the time of both phases `times` times, without `step`.
  void add(const PhaseTimes &phases, double times);

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

#endif // MTPLAN_PLANNER_SEARCH_PRICE_PHASE_TIMES_H
