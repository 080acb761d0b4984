//===- search.h - Branch and bound over configurations ----------*- C++ -*-===//
//
// Finds the fastest plan that fits. A configuration fixes the degrees of data,
// tensor, pipeline, context and expert parallelism, micro-batch, schedule,
// cuts, ZeRO stage and its group, recomputation, offload and tiles. The search
// enumerates the configurations that the options leave open (space/), computes
// a lower bound of each (bound/), solves the strategies of the most promising
// exactly (segment/, stage/), prices and simulates the step (price/), and
// prunes every configuration whose bound exceeds the incumbent. The bounds are
// admissible, so the result is the optimum of the whole space.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_SEARCH_H
#define MTPLAN_PLANNER_SEARCH_SEARCH_H

#include "planner/search/search_result.h"
#include "planner/search/space/search_options.h"

namespace mtplan::planner {

/// Returns the fastest plans of the space that `options` leaves open, with a
/// proof of optimality or the limit that prevented one.
/// \param model  for any number of samples; it is scaled to each micro-batch
SearchResult search(const ModelGraph &model, const Machine &machine,
                    const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEARCH_H
