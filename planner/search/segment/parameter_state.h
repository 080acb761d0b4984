//===- parameter_state.h - A parameter's storage and its price --*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H

#include <vector>

#include "planner/search/space/setting.h"
#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// How a parameter is stored: one value of its variable. ZeRO (Rajbhandari et
/// al. 2020) decides which rank holds which part of the state: stage 1 splits
/// the optimizer's state, stage 2 also the gradient, stage 3 also the weight.
struct ParameterState {
  Layout stored; ///< of the weight, between its uses
  /// Whether the gradient stays partial over the tensor axis until the step's
  /// end.
  bool reduceOncePerStep = false;
  /// The layout of the optimizer's state; without dimensions, the stored one.
  Layout optimizer;
  bool gradientIsSplit = false; ///< accumulated in the optimizer's layout

  const Layout &owned() const {
    return optimizer.dims.empty() ? stored : optimizer;
  }
  auto operator<=>(const ParameterState &) const = default;
};

/// Returns the layout of the gradient accumulator: the stored or the
/// optimizer's layout, partial over every other axis whose ranks see other
/// samples or positions, and partial over the tensor axis if the sum waits for
/// the end of the step.
Layout accumulatorLayout(const ParameterState &state, const Mesh &mesh);

/// Returns the layout gathered over every axis but the tensor axis.
Layout gathered(Layout layout, const Mesh &mesh);

/// Returns the states in which a parameter may be stored, the replicated one
/// first.
std::vector<ParameterState>
parameterStates(const ModelGraph &model, int parameter, const Setting &setting);

/// Returns the time to accumulate one gradient over the micro-batches of a
/// step: all but the first are added to the accumulator. Where weights are
/// split over replicas, it includes the copies around every gather and
/// reduction.
Seconds accumulationTime(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting);

/// Returns the time to square one rank's share of a gradient for the global
/// norm, once a step.
Seconds squaresTime(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting);

/// Returns the time of the optimizer's update once a step, squares included.
Seconds updateTime(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting);

/// The times of an offloaded optimizer, once a step; zero without offload.
struct HostTimes {
  Seconds down;   ///< of gradients to the host
  Seconds update; ///< on the host
  Seconds up;     ///< of weights back to the device
  Seconds total() const { return down + update + up; }
};

/// Returns the host times of one rank's share of the parameter. The ranks of a
/// node share their host evenly.
HostTimes hostTimes(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting);

/// Returns the bytes of one rank's gradient accumulator.
double sumBytes(const Parameter &parameter, const ParameterState &state,
                const Setting &setting);

/// Returns the bytes beyond all repeats' accumulators that scattering the last
/// repeat's gradients early needs (SearchOptions::scattersEarly), or 0.
double bytesBehind(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting);

/// Returns the time per step and the bytes of storing and updating one repeat's
/// parameter. If `pays` is false, another segment pays for the parameter, and
/// only the bytes of this segment's gradient accumulator are counted.
Cost parameterCost(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting, bool pays = true);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_PARAMETER_STATE_H
