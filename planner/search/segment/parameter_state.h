//===- parameter_state.h - A parameter's storage and its price --*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H

#include <vector>

#include "planner/search/space/setting.h"
#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// Describes the storage of a parameter: one value of its variable in the
/// choice problem.
struct ParameterState {
  Layout stored; ///< the weight's layout between uses
  /// Lists the tensor axes over which the gradient stays partial until the
  /// step's end, ascending.
  std::vector<int> reducedOncePerStep;
  /// Holds the layout of the optimizer's state; if `optimizer.dims` is empty,
  /// the state has the layout `stored`.
  Layout optimizer;
  bool gradientIsSplit = false; ///< gradient has the optimizer's layout

  const Layout &owned() const {
    return optimizer.dims.empty() ? stored : optimizer;
  }
  auto operator<=>(const ParameterState &) const = default;
};

/// Returns one rank's bytes of a gradient that several stages sum once a step.
/// With ZeRO, ranks sum only their shards. Trainers that flatten their state
/// (SearchOptions::padsShards) sum the entire gradient of a rank instead.
Bytes tiedGradientBytes(const Parameter &parameter, const ParameterState &state,
                        const Setting &setting);

/// Counts the bytes of a reported value, such as the loss. Each rank sums the
/// value over the micro-batches, and the ranks reduce the sum once a step, in
/// double precision.
inline constexpr double kReportedBytes = 8;

/// Returns the time of this reduction.
/// \param made  the layout in which an operator makes the value
Seconds reportedReduction(const Tensor &tensor, const Layout &made,
                          const Setting &setting);

/// Returns whether samples, positions or experts may split some dimension.
bool splitsWithData(const Parameter &parameter);

/// Lists the steps between replicas that a layout change of a tensor may have;
/// empty: all. A weight is only all-gathered. A gradient is reduce-scattered
/// or, if all replicas have the same one, made partial or sliced. So no layout
/// change has two collectives over one axis. The rule does not hold if
/// splitsWithData().
std::vector<StepKind> stepsBetweenReplicas(const ModelGraph &model,
                                           const SegmentGraph &segment,
                                           int tensor);

/// Returns whether the layout of parameters over the tensor axes may change
/// between storage and use. If not, parameters are used and gradients are
/// produced in the stored layout, because there is one tensor rank, or all
/// tensor ranks have equal samples and positions.
bool parametersMove(const Setting &setting);

/// Returns the layout of the gradient accumulator. This is the stored layout
/// or, if gradientIsSplit, the optimizer's. The accumulator is partial over
/// every other axis whose ranks have different samples or positions, and over
/// the axes in reducedOncePerStep.
Layout accumulatorLayout(const ParameterState &state, const Mesh &mesh);

/// Returns the layout after all-gathers over every axis but the tensor axes.
Layout gathered(Layout layout, const Mesh &mesh);

/// Returns the layout of a micro-batch's gradient before its reduction: the
/// layout of the gathered weight, partial over every axis whose ranks have
/// different samples or positions, and over the axes in reducedOncePerStep.
Layout gradientLayout(const ParameterState &state, const Mesh &mesh);

/// Returns the states that a parameter may have, replicated ones first.
std::vector<ParameterState>
parameterStates(const ModelGraph &model, int parameter, const Setting &setting);

/// Returns the time to accumulate one gradient over the micro-batches of a
/// step. The first micro-batch needs no addition. With ZeRO-3, and without a
/// measured rate, the time includes the copies around every all-gather and
/// reduction.
Seconds accumulationTime(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting);

/// Returns the time to square a gradient's shard for the global norm.
Seconds squaresTime(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting);

/// Returns the time of one update by the optimizer, including squaresTime().
Seconds updateTime(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting);

/// Holds the times of an offloaded optimizer in one step.
struct HostTimes {
  Seconds down;   ///< copy of gradients to the host
  Seconds update; ///< the optimizer's update on the host
  Seconds up;     ///< copy of weights back to the device
  Seconds total() const { return down + update + up; }
};

/// Returns the host times of one rank's shard of the parameter. The ranks of a
/// node share their host evenly.
HostTimes hostTimes(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting);

/// Returns the bytes of one rank's gradient accumulator.
double sumBytes(const Parameter &parameter, const ParameterState &state,
                const Setting &setting);

/// Returns the bytes of a parameter's bucket on one rank
/// (FrameworkMemory::buckets).
double bucketBytes(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting);

/// Returns the bytes that SearchOptions::scattersEarly needs for the
/// accumulator's shard of one more repeat. The result is 0 without that option
/// and for shared parameters. The result is also 0 unless, over some data axis,
/// ZeRO shards the optimizer's state but not the accumulator.
double earlyScatterBytes(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting);

/// Holds the times of a parameter's traffic between ranks that runs once a
/// step.
struct OnceTraffic {
  Seconds gather; ///< from the updated shard to the stored layout
  Seconds reduce; ///< from the accumulator to the optimizer's layout
};
OnceTraffic onceTraffic(const Parameter &parameter, const ParameterState &state,
                        const Setting &setting);

/// Returns the cost of storing and updating one repeat's parameter: the
/// weighted time per step and the bytes. If `pays` is false, another segment
/// bears that cost, and the result is only the bytes of this segment's gradient
/// accumulator.
Cost parameterCost(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting, bool pays = true,
                   const SumWeights &weights = {});

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H
