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
std::vector<Parallelism> enumerateSpace(const ModelGraph &model,
                                        const SearchOptions &options,
                                        std::vector<Rejection> &rejections);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_ENUMERATE_H
