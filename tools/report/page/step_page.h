//===- step_page.h - A simulated step on the page ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_STEP_PAGE_H
#define MTPLAN_TOOLS_REPORT_PAGE_STEP_PAGE_H

#include "planner/simulate/step.h"
#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Returns every task of every stream.
PageTimeline pageTimeline(const planner::StepProblem &problem,
                          const planner::StepResult &result);

/// Returns the time of each stage by class.
PageBars pageStages(const planner::StepProblem &problem,
                    const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_STEP_PAGE_H
