//===- rejection.cpp - Why a candidate is not among the plans, in words ---===//

#include "planner/search/search.h"

namespace mtplan::planner {

const char *nameOf(Rejection::Reason reason) {
  using Reason = Rejection::Reason;
  switch (reason) {
  case Reason::divisor:
    return "divisor";
  case Reason::memory:
    return "memory";
  case Reason::host:
    return "host";
  case Reason::bound:
    return "bound";
  case Reason::pins:
    return "pins";
  case Reason::budget:
    return "budget";
  }
  return "?";
}

void countCandidates(SearchResult &result, std::int64_t solved) {
  result.solved = solved;
  for (const Rejection &rejection : result.rejections) {
    if (rejection.how.microBatch == 0) // a mesh, of which there are none
      continue;
    switch (rejection.reason) {
    case Rejection::Reason::bound:
      result.pruned += rejection.count;
      break;
    case Rejection::Reason::memory:
    case Rejection::Reason::host:
      (rejection.isFloor ? result.pruned : result.refused) += rejection.count;
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
