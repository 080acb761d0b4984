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
// made to the layouts read). The space is restricted: values cross segments
// reduced; gathered parameters are not kept from forward to backward; matrix
// products and attention are not repeated on every rank of the tensor axis if
// an allowed split divides them, unless a pin says so; stored pieces are
// brought together for use only where samples or positions may be split.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PROBLEM_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PROBLEM_H

#include <vector>

#include "planner/search/segment/parameter_state.h"
#include "planner/search/segment/reshard_prices.h"
#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// A producer or reader of a tensor: a variable, and the layout (an index into
/// the tensor's domain) that each of its values means.
struct Port {
  int variable = -1;
  std::vector<int> layouts;
  bool operator==(const Port &) const = default;
};

/// One phase in which a tensor is converted from one layout into others.
struct Conversions {
  int tensor = 0;
  Phase phase = Phase::forward;
  Port maker;
  std::vector<Port> readers;
  int setVariable = -1;       ///< over sets, or -1: the readers decide
  std::vector<unsigned> sets; ///< the domain of setVariable
};

/// How a table's numbers scale from one micro-batch to a step.
enum class Growth : std::uint8_t {
  /// Time with a step's micro-batches, memory with those in flight.
  perMicroBatch,
  /// Memory with those in flight, once for all repeats of a virtual stage.
  carriedOut,
  perChunk,        ///< memory once for all repeats of a virtual stage
  perStep,         ///< not at all
  sharedByRepeats, ///< once for all repeats of the segment
  accumulation,    ///< by accumulationTime(), over micro-batches
};

/// The Link with the meaning of its variables, to read an assignment back.
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

/// Builds the problem of one micro-batch, with one in flight. Shared ids of
/// tied parameters are their index in the model.
/// \param owner  true if this segment pays for the shared parameters it uses
SegmentProblem unitProblem(const ModelGraph &model, int segment,
                           const Setting &setting,
                           const std::vector<bool> &owner);

/// Builds the problem of one micro-batch's time alone with its phases apart:
/// tables hold seconds of forward as time, and seconds of backward in place of
/// memory.
SegmentProblem phaseProblem(const ModelGraph &model, int segment,
                            const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PROBLEM_H
