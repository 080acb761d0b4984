//===- recompute.h - What backward recomputes -------------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SPACE_RECOMPUTE_H
#define MTPLAN_PLANNER_SEARCH_SPACE_RECOMPUTE_H

#include <vector>

#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Returns by operator of a repeated segment whether backward runs it again.
/// Full recomputation repeats all forward operators or, where the software
/// stops early, those up to the last whose result backward reads; selective
/// recomputation follows the software's rule. A segment that occurs once
/// recomputes nothing.
std::vector<bool> recomputedOps(const SegmentGraph &segment,
                                Recompute recompute, const Software &software);

/// Returns whether backward finds every tensor that it reads where forward left
/// it: nothing is recomputed, or only attention's private results are.
bool keepsAllTensors(Recompute recompute, const Software &software);

/// Returns by tensor whether its forward layout change is repeated, because
/// backward recomputes the tensor or, in full recomputation, starts from it.
/// Weights are excluded: gathered for backward, they serve the recomputation as
/// well.
std::vector<bool> recomputedTensors(const SegmentGraph &segment,
                                    Recompute recompute,
                                    const Software &software);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SPACE_RECOMPUTE_H
