//===- recompute.h - What backward computes a second time -------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_RECOMPUTE_H
#define MTPLAN_PLANNER_SEARCH_RECOMPUTE_H

#include <vector>

#include "planner/search/setting.h"

namespace mtplan::planner {

/// By operator of a segment that repeats: whether backward runs it again.
/// Recomputed in full, all forward operators, or, where the software stops
/// early, those up to the last whose result backward reads; selectively, what
/// the software's rule says. Nothing of a segment that is there once.
std::vector<bool> operatorsAgain(const SegmentGraph &segment,
                                 Recompute recompute, const Software &software);

/// Whether backward finds every tensor that it reads where forward left it:
/// nothing is recomputed, or what attention keeps beside them.
bool keepsAllTensors(Recompute recompute, const Software &software);

/// By tensor: whether what is converted in forward is converted again, because
/// backward makes the tensor a second time or, as it recomputes in full, starts
/// from it. Weights are not: brought together for backward, they serve the
/// recomputation as well.
std::vector<bool> tensorsAgain(const SegmentGraph &segment, Recompute recompute,
                               const Software &software);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_RECOMPUTE_H
