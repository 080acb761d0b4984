//===- phase_times.h - Times and collectives, by phase ----------*- C++ -*-===//
//
// Computes the times of one repeat; a simulated step consists of such times.
// Collectives of parameters or gradients between replicas have separate times,
// because they can overlap compute. All other collectives run between two
// operators and are part of the time of their phase.
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

/// Holds the time of one phase, by cause.
struct PhaseParts {
  Seconds compute;         ///< operators
  Seconds local;           ///< slices and masks, which do not communicate
  Seconds tensor, context; ///< collectives over the tensor or context axis
  /// Holds the time of collectives of activations over the data and expert
  /// axes, such as the exchange of tokens between experts.
  Seconds exchange;
  Seconds total() const {
    return compute + local + tensor + context + exchange;
  }
};

/// Holds the times of one repeat, per micro-batch unless noted otherwise.
struct PhaseTimes {
  PhaseParts forward, backward;
  Seconds weightGradient;                ///< the part of `backward` for weights
  Seconds gatherForward, gatherBackward; ///< all-gathers of parameters
  Seconds reduce;     ///< reductions of gradients, each micro-batch
  Seconds reduceStep; ///< reductions of gradients, once a step
  Seconds gatherStep; ///< all-gathers of parameters, once a step
  Seconds update;     ///< AdamW and `squares` on the device, once a step
  Seconds squares;    ///< squaring gradients for the norm, once a step
  HostTimes host;     ///< the offloaded part of the update, once a step
  /// Holds the times in which the host launches the work of a phase
  /// (Software::host).
  Seconds launchForward, launchBackward;
};

Seconds operatorTime(const SegmentGraph &segment, const SegmentPlan &plan,
                     std::size_t o, const OpRun &run, const Setting &setting);

/// Returns the least time of those operators of a segment that make only
/// gradients of weights. Each operator has its fastest strategy.
Seconds leastWeightGradients(const ModelGraph &model, int segment,
                             const Setting &setting);

/// \param paid  by parameter, whether an earlier run already counts the
/// reduction and update of a shared parameter. The call sets the entries of all
/// parameters that this run counts.
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

/// Describes a group of equal collectives.
struct LedgerEntry {
  StepKind kind{};
  int axis = 0;
  Bytes bytes; ///< the input of one rank to one collective
  LedgerPhase phase{};
  std::string cause; ///< the operator or parameter that owns the value
  std::string segment;
  std::int64_t perMicroBatch = 0; ///< of one replica; 0 in the update
  std::int64_t perStep = 0;
  /// Holds the time of one collective. For activations, the time includes the
  /// share that the software hides, and excludes the copies around the
  /// collective.
  Seconds time;
};

/// Returns the collectives in chain order: forward, backward, update.
/// Collectives of recomputation belong to backward. The time is linear in the
/// size of `plans`.
std::vector<LedgerEntry> ledgerOf(const ModelGraph &model,
                                  const std::vector<SegmentPlan> &plans,
                                  const Setting &setting);

/// Holds the seconds of one step on the busiest stage, by cause. All members
/// before `step` add up to `step`. The comments of PhaseParts explain the
/// members from `compute` to `exchange`.
struct StepTime {
  /// Adds the parts of both phases, multiplied by `times`. `data` and the
  /// members after it do not change.
  void add(const PhaseTimes &phases, double times);

  Seconds compute;
  Seconds local;
  Seconds tensor, context;
  Seconds exchange;
  Seconds data;   ///< exposed traffic of parameters and gradients
  Seconds update; ///< the optimizer's update on the device
  Seconds host;   ///< exposed time of offload
  /// Holds the time in which the device waits for the host's launches, and
  /// HostLaunch::step.
  Seconds launch;
  Seconds pipeline; ///< waits for other stages: bubble, messages
  Seconds step;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_PHASE_TIMES_H
