//===- validated_terms.h - Terms that no published run validates -*- C++
//-*-===//
//
// Predictions are compared with published runs (docs/accuracy). This file lists
// the terms of a step's time that occur in none of these runs.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TOOLS_REPORT_VALIDATED_TERMS_H
#define MTPLAN_TOOLS_REPORT_VALIDATED_TERMS_H

#include <string>
#include <vector>

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// A term of a plan's time that no published run has.
struct UnvalidatedTerm {
  std::string name;      ///< "the zero-bubble schedule"
  std::string without;   ///< "as 1f1b": what is priced instead
  planner::Seconds step; ///< step time without this term
};

struct Unvalidated {
  std::vector<UnvalidatedTerm> terms;
  planner::Seconds step; ///< step time without all these terms
};

/// Returns the plan's terms; empty if published runs validate each.
Unvalidated unvalidatedOf(const Problem &problem,
                          const planner::PlannedCandidate &plan);

/// Returns one line for a report, or nothing.
std::string unvalidatedText(const Problem &problem,
                            const planner::PlannedCandidate &plan);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_VALIDATED_TERMS_H
