//===- once_tax.h - Compute lost beside traffic once a step -----*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_ONCE_TAX_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_ONCE_TAX_H

#include <vector>

#include "planner/search/segment/segment_problem.h"

namespace mtplan::planner {

/// Adds to a segment's problem the terms of SumWeights::gatherTax and
/// SumWeights::reduceTax. Each term is the smaller of two costs, so a Boolean
/// variable chooses between the two. The problem's minimum is exact, because
/// one cost is a sum over parameters and reported values, and the other is a
/// constant. The variables come after all others.
/// \param owner  see unitProblem()
void addOnceTax(SegmentProblem &problem, const ModelGraph &model, int segment,
                const Setting &setting, const std::vector<bool> &owner);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_ONCE_TAX_H
