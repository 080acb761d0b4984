//===- enumerate.h - Ways to share the devices out --------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_ENUMERATE_H
#define MTPLAN_PLANNER_SEARCH_ENUMERATE_H

#include <vector>

#include "planner/search/search.h"

namespace mtplan::planner {

/// Every legal way that `options` leave open, in a fixed order; of those that
/// are not legal, what stands against it, once per mesh, in `rejections`.
///
/// Left out, as they cost more and gain nothing here (unless asked for alone):
/// ZeRO without replicas, ZeRO 2 and 3 under a pipeline (Rajbhandari's gradient
/// and parameter traffic would be paid per micro-batch), schedules that differ
/// only where there are several stages.
/// Where the number of layers that recompute is open, the one with the fewest
/// stands for all (recomputeCounts); where a pipeline may be cut unevenly, the
/// even cut (isCutAnyhow).
std::vector<Parallelism> enumerateSpace(const ModelGraph &model,
                                        const Machine &machine,
                                        const SearchOptions &options,
                                        std::vector<Rejection> &rejections);

/// Whether some layers may recompute and others not.
bool isCounted(const SearchOptions &options);

/// How many layers of each part may recompute in candidates like this one, from
/// few to many: 0, 1, ..., -1 for all. Each takes longer than those before and
/// keeps less.
std::vector<int> recomputeCounts(const Parallelism &how,
                                 const SearchOptions &options);
/// The candidate with one of these.
Parallelism withCount(Parallelism how, int count);
int countOf(const Parallelism &how);

/// Whether the candidate, or the one that stands for it, is among those that
/// were enumerated.
bool isInSpace(const std::vector<Parallelism> &space, const Parallelism &how,
               const SearchOptions &options);

/// Whether the candidates like this one with `unevenCuts` belong to the space.
bool isCutAnyhow(const Parallelism &how, const SearchOptions &options);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_ENUMERATE_H
