//===- search_result.cpp - The plans that a search found ------------------===//

#include "planner/search/search_result.h"

namespace mtplan::planner {

std::vector<SegmentPlan> PlannedCandidate::plans() const {
  std::vector<SegmentPlan> all;
  for (const std::vector<SegmentPlan> &part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

void countCandidates(SearchResult &result, std::int64_t solved) {
  result.solved = solved;
  for (const Rejection &rejection : result.rejections) {
    // Stands for a whole mesh that is not legal.
    if (rejection.config.microBatch == 0)
      continue;
    switch (rejection.reason) {
    case Rejection::Reason::bound:
      result.pruned += rejection.count;
      break;
    case Rejection::Reason::memory:
    case Rejection::Reason::host:
      (rejection.isLowerBound ? result.pruned : result.refused) +=
          rejection.count;
      break;
    case Rejection::Reason::divisor:
    case Rejection::Reason::pins:
      result.refused += rejection.count;
      break;
    case Rejection::Reason::budget:
      result.unreached += rejection.count;
      break;
    }
  }
}

} // namespace mtplan::planner
