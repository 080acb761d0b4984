//===- plan_page.h - The page about a search's outcome ----------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_PLAN_PAGE_H
#define MTPLAN_TOOLS_REPORT_PAGE_PLAN_PAGE_H

#include <vector>

#include "planner/search/price/memory_use.h"
#include "planner/search/price/phase_times.h"
#include "planner/simulate/step.h"
#include "tools/driver/pipeline.h"
#include "tools/report/page/page.h"
#include "tools/report/sweep.h"

namespace mtplan::tools {

/// Builds the page of an outcome, which must have a best plan. Simulates all
/// tasks of this plan's step again.
/// \param sweep  a sweep whose plans are drawn beside the alternatives, or null
Page pageOf(const PlanOutcome &outcome, const Sweep *sweep = nullptr);

PageBars pageStep(const planner::StepTime &time);

PageBars pageMemory(const std::vector<planner::MemoryUse> &stages);

/// Groups collectives by axis, phase and kind. The result is sorted by axis,
/// then in order of appearance.
std::vector<PageTraffic>
pageTraffic(const std::vector<planner::LedgerEntry> &ledger,
            const planner::Mesh &mesh);

/// Adds the number and time of messages between stages, which ledgers lack.
void addSends(std::vector<PageTraffic> &traffic,
              const planner::StepResult &result);

PageTimeline pageTimeline(const planner::StepProblem &problem,
                          const planner::StepResult &result);

PageBars pageStages(const planner::StepProblem &problem,
                    const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_PLAN_PAGE_H
