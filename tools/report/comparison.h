//===- comparison.h - Plans side by side ------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_COMPARISON_H
#define MTPLAN_TOOLS_REPORT_COMPARISON_H

#include <string>
#include <vector>

#include "tools/report/plan_facts.h"

namespace mtplan::tools {

/// Returns "tensor communication +9.70 s, compute -1.20 s": the largest
/// differences in time between `plan` and `best`.
std::string differencesText(const planner::PlannedCandidate &plan,
                            const planner::PlannedCandidate &best);

/// Returns "61.2 of 31.4 GiB: optimizer 40.1, parameters 10.2", with the
/// largest classes of memory.
std::string shortageText(const planner::MemoryUse &memory);

/// Returns the term that adds most to the step time of `candidate` compared
/// with `best`: "tensor communication 310 ms against 205 ms". If the candidate
/// is faster, returns the term that saves most.
std::string reasonAgainst(const planner::PlannedCandidate &candidate,
                          const planner::PlannedCandidate &best);

/// Returns the additional step time in percent. If the search left the
/// candidate unfinished, because the candidate cannot win, returns the range
/// from its lower bound to the plan found.
std::string slowdownText(const planner::PlannedCandidate &plan,
                         const planner::PlannedCandidate &best);

/// Returns one line for the best plan, for each other listed plan, and for each
/// mesh without a plan. The lines state additional times or missing memory. If
/// the search has only a lower bound for a mesh, this function solves the
/// nearest candidate.
std::vector<std::string> explanationsOf(const PlanOutcome &outcome);

/// Says how the best plan of a narrower search differs from the outcome's best
/// plan, or why the narrower search found no plan.
/// \param words     flags that narrow the search: "tp=8 zero=1"
/// \param narrower  outcome of the narrower search, which may have errors
std::string answerTo(const std::string &words, const PlanOutcome &narrower,
                     const PlanOutcome &outcome);

struct ComparedPlan {
  std::string name;                     ///< file name
  const PlanOutcome *outcome = nullptr; ///< has a best plan
};

/// Compares configurations, times, memory, traffic by axis and the splits of
/// operators. The last line says which plan is faster, and why.
std::string comparisonOf(const ComparedPlan &one, const ComparedPlan &other);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_COMPARISON_H
