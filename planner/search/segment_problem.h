//===- segment_problem.h - A segment as a choice problem --------*- C++ -*-===//
//
// The bridge from operators and layouts to variables and tables:
//
//   an operator       is a variable over its legal strategies;
//   a parameter       is a variable over (stored layout, gradient summed over
//                     the tensor axis each micro-batch, or once per step);
//   a boundary value  is a variable over layouts, tied to the neighbour's;
//   a saved value     is a variable over the layout it is kept in from forward
//                     to backward: one layout per value;
//   a value with three or more readers in one phase is a variable over the
//                     *set* of layouts it is read in, each paid once, however
//                     many readers share it.
//
// Tables price operators (compute) and values (the conversions from the layout
// made to the layouts read). What the space leaves out: values cross segments
// reduced; gathered parameters are not kept from forward to backward; matrix
// products and attention are not repeated on every rank of the tensor axis if
// an allowed split divides them, unless a pin says so; stored pieces are
// brought together for use only where samples or positions may be split.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_PROBLEM_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_PROBLEM_H

#include <vector>

#include "planner/search/reshard_prices.h"
#include "planner/solve/chain.h"

namespace mtplan::planner {

/// How a parameter is kept, one value of its variable. Which rank holds which
/// part of the state is ZeRO (Rajbhandari et al. 2020): from stage 1 on the
/// optimizer's, from stage 2 on the gradient, in stage 3 the weight itself.
struct ParameterState {
  Layout stored; ///< of the weight, between its uses
  bool reduceOncePerStep =
      false; ///< gradient kept partial over the tensor axis
  /// Layout of the optimizer's state; no dimensions: the stored one.
  Layout optimizer;
  bool gradientIsSplit = false; ///< accumulated in the optimizer's layout

  const Layout &owned() const {
    return optimizer.dims.empty() ? stored : optimizer;
  }
  auto operator<=>(const ParameterState &) const = default;
};

/// Layout of the gradient's accumulator: the stored one, or the optimizer's,
/// partial over every other axis whose ranks see other samples or positions,
/// and over the tensor axis if the sum waits for the end of the step.
Layout accumulatorLayout(const ParameterState &state, const Mesh &mesh);

/// The states a parameter may be kept in, whole first.
std::vector<ParameterState>
parameterStates(const ModelGraph &model, int parameter, const Setting &setting);

/// Memory traffic of one gradient over all micro-batches of a step: all but the
/// first are added to what is there; where weights are split over replicas,
/// copies around every gather and reduction.
Seconds accumulationTime(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting);

/// Of the squares of what a rank owns of one gradient's sum, for the norm of
/// all, once a step.
Seconds squaresTime(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting);

/// Of the optimizer's update, once a step, with the squares.
Seconds updateTime(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting);

/// Of an optimizer that is offloaded, once a step; else nothing.
struct HostTimes {
  Seconds down;   ///< of gradients to the host
  Seconds update; ///< there
  Seconds up;     ///< of weights back
  Seconds total() const { return down + update + up; }
};

/// What a rank owns of the parameter. Nodes share their host evenly.
HostTimes hostTimes(const Parameter &parameter, const ParameterState &state,
                    const Setting &setting);

/// Bytes of a rank's sum of gradients.
double sumBytes(const Parameter &parameter, const ParameterState &state,
                const Setting &setting);

/// Bytes behind the sums of all copies for what is scattered early of the last,
/// see SearchOptions; 0 where nothing is.
double bytesBehind(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting);

/// Time and memory of keeping and updating one copy, per step; of a
/// segment that does not pay for it, of its own sum of gradients alone.
Cost parameterCost(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting, bool pays = true);

/// Layouts in which a value may be handed from segment to segment: whole, or
/// split over the tensor axis along any dimension that the splits allow;
/// samples lie over the replicas, positions over the context axis.
std::vector<Layout> boundaryLayouts(const Tensor &tensor,
                                    const Setting &setting);

/// A maker or reader of a tensor: a variable, and the layout (by index in the
/// tensor's domain) that each of its values means.
struct Port {
  int variable = -1;
  std::vector<int> layouts;
  bool operator==(const Port &) const = default;
};

/// One phase in which a tensor is brought from one layout into others.
struct Conversions {
  int tensor = 0;
  Phase phase = Phase::forward;
  Port maker;
  std::vector<Port> readers;
  int setVariable = -1;       ///< over sets, or -1: given by the readers
  std::vector<unsigned> sets; ///< the domain of setVariable
};

/// How a table's numbers follow from those of one micro-batch.
enum class Growth : std::uint8_t {
  perMicroBatch, ///< time with the micro-batches of a step, memory with those
                 ///< in flight
  handedOn,      ///< memory with those in flight, and all copies of a part of
                 ///< the model keep it together
  ofEachPart,    ///< memory not at all, and all copies of a part of the model
                 ///< pay it together
  perStep,       ///< not at all
  ofAllCopies,   ///< not at all, and all copies of the segment pay it together
  accumulation,  ///< of gradients over micro-batches: accumulationTime()
};

/// A variable's meaning kept beside the Link, to read an assignment back.
struct SegmentProblem {
  Link link;
  std::vector<std::pair<Growth, int>> growth;    ///< by table; parameter or -1
  std::vector<std::vector<Strategy>> strategies; ///< by op; variable = op index
  std::vector<LayoutDomain> domains;             ///< by tensor
  std::vector<int> parameterVariables; ///< by parameter, -1: not used here
  std::vector<std::vector<ParameterState>> parameterStates;
  std::vector<int> savedVariables; ///< by tensor, -1: not saved
  std::vector<Conversions> conversions;
  std::vector<std::vector<Layout>> boundary; ///< layouts of link.in then .out
};

/// Shared ids of tied parameters are their index in the model. Of one
/// micro-batch, one of which is in flight.
/// \param owner  true if this segment pays for the shared parameters it uses
SegmentProblem unitProblem(const ModelGraph &model, int segment,
                           const Setting &setting,
                           const std::vector<bool> &owner);

/// The link of `copies` copies with the numbers of the setting's micro-batches,
/// all and in flight.
Link scaledLink(const SegmentProblem &unit, const ModelGraph &model,
                const Setting &setting, int copies);

/// Both at once.
SegmentProblem buildSegmentProblem(const ModelGraph &model, int segment,
                                   const Setting &setting,
                                   const std::vector<bool> &owner);

/// The time of one micro-batch alone, phases apart: tables hold seconds of
/// forward as their time, and seconds of backward in the place of memory.
SegmentProblem phaseProblem(const ModelGraph &model, int segment,
                            const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_PROBLEM_H
