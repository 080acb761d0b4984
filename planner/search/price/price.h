//===- price.h - The simulated step of a plan -------------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_PRICE_H
#define MTPLAN_PLANNER_SEARCH_PRICE_PRICE_H

#include <vector>

#include "planner/search/price/phase_times.h"

namespace mtplan::planner {

/// Describes `count` repeats by the plan and the times of one repeat.
struct PricedRun {
  const SegmentPlan *plan = nullptr;
  const PhaseTimes *times = nullptr;
  int count = 1;
};

/// Lists the runs of each virtual stage, in model order.
using PricedParts = std::vector<std::vector<PricedRun>>;

struct StepRun {
  PhaseTimes times;
  int count = 1;
};

/// Holds the properties of a virtual stage that determine the step's time. The
/// bytes count one rank's shards of the values that are sent for one
/// micro-batch.
struct StepPart {
  std::vector<StepRun> runs;
  Bytes sentForward, sentBackward;
};

/// Describes the gradient of a parameter that several stages hold. These stages
/// all-reduce the gradient once a step.
struct TiedGradient {
  int parameter = 0;
  int stages = 0; ///< number of stages that hold the parameter
  Bytes bytes;    ///< one rank's shard
};

/// Returns the tied gradients in the order of the parameters.
/// \param parts  the runs of each virtual stage; part k is on stage k % stages
std::vector<TiedGradient>
tiedGradientsOf(const ModelGraph &model,
                const std::vector<std::vector<SegmentPlan>> &parts,
                const Setting &setting, int stages);

/// Returns the step as a problem for the simulator.
/// \param parts  the virtual stages; part k is chunk k / config.pp of stage k %
/// config.pp
/// \param tied   one rank's shards of the gradients that the first and the last
/// stage both compute
StepProblem stepProblemOf(const std::vector<StepPart> &parts, Bytes tied,
                          const Setting &setting, const Parallelism &config,
                          const Overlaps &overlaps);

StepProblem stepProblemOf(const ModelGraph &model, const PricedParts &parts,
                          const Setting &setting, const Parallelism &config,
                          const Overlaps &overlaps);

/// Returns the slice of one repeat on the assumption that traffic does not slow
/// compute. Work that runs once a step is left out, except `gather` and
/// `reduce`.
SliceTimes sliceWithoutTax(const PhaseTimes &phases, const Parallelism &config);

/// Returns the time that compute loses while a collective between replicas
/// overlaps compute, as a share of the collective's time.
double replicaTaxOf(const Setting &setting, const Parallelism &config);

/// Returns the time that ParameterTraffic::perSharer adds to a step.
Seconds sharingTime(const Setting &setting, const Parallelism &config);

/// Returns the time that HostLaunch::step and shardedStep add to a step.
Seconds hostStepTime(const Setting &setting, const Parallelism &config);

/// Returns the times of the simulated step. If there are many micro-batches in
/// a schedule other than gpipe, only enough of them to reach the steady state
/// are simulated; each further micro-batch adds the mean time of a micro-batch
/// in that state.
StepTime priceStep(const ModelGraph &model, const PricedParts &parts,
                   const Setting &setting, const Parallelism &config,
                   const Overlaps &overlaps);

/// Returns StepTime::step alone, which is faster.
Seconds stepSecondsOf(StepProblem problem);

/// Returns the work that `software` overlaps with compute. The members for
/// offload are copied from `rest`.
inline Overlaps overlapsOf(const Software &software, Overlaps rest) {
  rest.pointToPoint = software.overlap.pointToPoint;
  rest.gather = software.overlap.gather;
  rest.reduce = software.overlap.reduce;
  return rest;
}

/// Returns the time that compute loses to an overlapped collective, as a share
/// of the collective's time. The share is smaller for a group with one rank per
/// node, because the few channels of its collectives occupy few compute units.
inline double taxOf(const Software &software, int ranksPerNode) {
  return ranksPerNode > 1 ? software.overlap.tax
                          : software.overlap.taxOneRankPerNode;
}

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_PRICE_H
