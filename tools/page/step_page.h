//===- step_page.h - A simulated step on the page ---------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_STEP_PAGE_H
#define MTPLAN_TOOLS_PAGE_STEP_PAGE_H

#include "planner/simulate/step.h"
#include "tools/page/page.h"

namespace mtplan::tools {

/// Every task of every stream.
PageTimeline pageTimeline(const planner::StepProblem &problem,
                          const planner::StepResult &result);

/// Where each stage's time goes.
PageBars pageStages(const planner::StepProblem &problem,
                    const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_STEP_PAGE_H
