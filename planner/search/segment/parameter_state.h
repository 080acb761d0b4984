//===- parameter_state.h - A parameter's storage and its price --*- C++ -*-===//
//
// Enumerates the layouts of a parameter and its training state, and prices its
// gradient accumulation and update.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H

#include <vector>

#include "planner/search/space/setting.h"
#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// Describes the storage of a parameter: one value of its variable in the
/// choice problem. ZeRO (Rajbhandari et al. 2020) shards the state over ranks:
/// stage 1 shards the optimizer's state, stage 2 also the gradient, stage 3
/// also the weight.
struct ParameterState {
  Layout stored; ///< the weight's layout between uses
  /// Says whether the gradient stays partial over the tensor axis until the
  /// step's end.
  bool reduceOncePerStep = false;
  /// Holds the layout of the optimizer's state; if `optimizer.dims` is empty,
  /// the state has the layout `stored`.
  Layout optimizer;
  bool gradientIsSplit = false; ///< gradient has the optimizer's layout

  /// Returns the layout of the optimizer's state.
  const Layout &owned() const {
    return optimizer.dims.empty() ? stored : optimizer;
  }
  auto operator<=>(const ParameterState &) const = default;
};

/// Returns one rank's bytes of a gradient that several stages sum once a step.
/// With ZeRO, ranks sum their shards. Trainers that flatten their state
/// (SearchOptions::padsShards) sum all of the gradient that a rank has.
Bytes tiedGradientBytes(const Parameter &parameter, const ParameterState &state,
                        const Setting &setting);

/// Counts the bytes of a reported value, such as the loss: ranks add it up over
/// the micro-batches, and reduce it once a step, in double precision.
inline constexpr double kReportedBytes = 8;

/// Returns the layout of the gradient accumulator: the stored or the
/// optimizer's layout, partial over every other axis whose ranks have different
/// samples or positions, and partial over the tensor axis if reduceOncePerStep.
Layout accumulatorLayout(const ParameterState &state, const Mesh &mesh);

/// Returns the layout after all-gathers over every axis but the tensor axis.
Layout gathered(Layout layout, const Mesh &mesh);

/// Returns the states in which a parameter may be stored, the replicated one
/// first.
std::vector<ParameterState>
parameterStates(const ModelGraph &model, int parameter, const Setting &setting);

/// Returns the time to accumulate one gradient over the micro-batches of a
/// step: all but the first are added to the accumulator. With ZeRO-3, and
/// without a measured rate, the time includes the copies around every
/// all-gather and reduction.
Seconds accumulationTime(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting);

/// Returns the time to square one rank's shard of a gradient for the global
/// norm, once a step.
Seconds squaresTime(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting);

/// Returns the time of the optimizer's update once a step, squaresTime()
/// included.
Seconds updateTime(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting);

/// Holds the times of an offloaded optimizer, once a step; zero without
/// offload.
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

/// Returns the bytes of the accumulator's shard of one more repeat, which
/// SearchOptions::scattersEarly needs; 0 without that option, for shared
/// parameters, and unless ZeRO shards the optimizer's state but not the
/// accumulator over a data axis.
double earlyScatterBytes(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting);

/// Returns the time per step and the bytes of storing and updating one repeat's
/// parameter. If `pays` is false, another segment has that cost, and only the
/// bytes of this segment's gradient accumulator are returned.
Cost parameterCost(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting, bool pays = true);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H
