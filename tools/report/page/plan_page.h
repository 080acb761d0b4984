//===- plan_page.h - The page about a search's outcome ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_PLAN_PAGE_H
#define MTPLAN_TOOLS_REPORT_PAGE_PLAN_PAGE_H

#include "tools/driver/pipeline.h"
#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Builds the page of an outcome that has a best plan. The plan's step is
/// simulated once more, in full.
Page pageOf(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_PLAN_PAGE_H
