//===- segment_problem.h - A segment as a choice problem --------*- C++ -*-===//
//
// Translates operators and layouts to variables and cost tables:
//
//   an operator       is a variable over its legal strategies;
//   a parameter       is a variable over its states: the stored layout and, for
//                     each tensor axis, whether the gradient is summed over
//                     the axis in every micro-batch or once per step;
//   a boundary value  is a variable over layouts; the neighbouring segment's
//                     variable must have the same value;
//   a saved value     is a variable over the layout in which it is saved from
//                     forward to backward: one layout per value;
//   a value with many readers in one phase is a variable over the *set* of
//                     layouts in which it is read (conversions.h).
//
// Tables price operators (compute) and values (the conversions from the
// producer's layout to the layouts of the readers). The space is restricted.
// Values between segments are never partial. All-gathered parameters are not
// kept from forward to backward. Products and attention are split over at least
// one tensor axis if an allowed split exists, unless they are pinned. Stored
// shards are all-gathered over a tensor axis only if tensor axes may split
// samples or positions.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PROBLEM_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PROBLEM_H

#include <vector>

#include "planner/search/segment/conversions.h"
#include "planner/search/segment/parameter_state.h"
#include "planner/solve/factor_graph.h"

namespace mtplan::planner {

/// Says how a table's costs are scaled from one micro-batch to a step.
enum class CostScale : std::uint8_t {
  /// Time is multiplied by the number of micro-batches per step, and memory by
  /// the number of micro-batches in flight.
  perMicroBatch,
  /// Memory is multiplied by the number of micro-batches in flight, and counts
  /// once for all repeats of a virtual stage.
  carriedOut,
  perChunk,        ///< memory counts once for all repeats of a virtual stage
  perStep,         ///< costs are not scaled
  sharedByRepeats, ///< costs count once for all repeats of the segment
  accumulation,    ///< time is that of accumulationTime()
};

struct TableScale {
  CostScale scale = CostScale::perMicroBatch;
  /// Says whether the table prices a recomputed value. In the share of repeats
  /// that recompute, the time counts twice and the memory does not count.
  bool recomputed = false;
  int parameter = -1;     ///< for CostScale::accumulation
  bool ofWeights = false; ///< whether only gradients of weights are priced
  /// Says whether the times already include the factors of SumWeights.
  bool isWeighted = false;
};

/// Holds a Link and the meaning of its variables.
struct SegmentProblem {
  Link link;
  double computeWeight = 1.0;                    ///< SumWeights::compute
  std::vector<TableScale> scales;                ///< by table
  std::vector<std::vector<Strategy>> strategies; ///< by op; op i is variable i
  std::vector<LayoutDomain> domains;             ///< by tensor
  /// Holds the variable of each parameter, or -1 if the segment does not use
  /// the parameter.
  std::vector<int> parameterVariables;
  /// Holds, by parameter, the state for each value of the parameter's variable.
  std::vector<std::vector<ParameterState>> parameterStates;
  /// Holds, by tensor, the variable of the layout in which the tensor is saved,
  /// or -1 if the tensor is not saved.
  std::vector<int> savedVariables;
  std::vector<Conversions> conversions;
  /// Holds, by boundary variable (link.in before link.out), the layout for each
  /// value.
  std::vector<std::vector<Layout>> boundary;
};

/// Returns the problem of a step with a single micro-batch and without
/// recomputation. Setting::recomputeShare is ignored; scaledLink() applies it.
/// The id of a tied parameter in Link::shared is its index in the model.
/// \param owner  by parameter, whether this segment bears the cost of a shared
/// parameter that it uses
SegmentProblem unitProblem(const ModelGraph &model, int segment,
                           const Setting &setting,
                           const std::vector<bool> &owner);

/// Returns a problem in which both costs are times of one micro-batch:
/// CostTable::time holds the seconds of forward, and CostTable::memory the
/// seconds of backward.
/// \param weightGradients  whether backward includes the operators that make
/// only gradients of weights, which a zero-bubble schedule postpones
SegmentProblem phaseProblem(const ModelGraph &model, int segment,
                            const Setting &setting,
                            bool weightGradients = true);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_SEGMENT_PROBLEM_H
