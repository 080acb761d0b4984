//===- validated_terms.h - What no published run vouches for ----*- C++ -*-===//
//
// The terms of a step's time that no row of the published runs, to which
// predictions are held (docs/accuracy), has in it.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_VALIDATED_TERMS_H
#define MTPLAN_TOOLS_VALIDATED_TERMS_H

#include <string>
#include <vector>

#include "tools/pipeline.h"

namespace mtplan::tools {

/// A term that a plan's time leans on, and that no published run has.
struct UnvalidatedTerm {
  std::string name;      ///< "the zero-bubble schedule"
  std::string without;   ///< "as 1f1b": what is priced instead
  planner::Seconds step; ///< with this term alone taken away
};

struct Unvalidated {
  std::vector<UnvalidatedTerm> terms;
  planner::Seconds step; ///< with all of them taken away
};

/// Empty terms: every term of the plan's time is in some published run.
Unvalidated unvalidatedOf(const Problem &problem,
                          const planner::PlannedCandidate &plan);

/// One line for a report, or nothing.
std::string unvalidatedText(const Problem &problem,
                            const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_VALIDATED_TERMS_H
