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

/// Builds the page of an outcome that has a best plan. The plan's step is
/// simulated once more, in full.
/// \param sweep  its plans are drawn beside the alternatives; may be null
Page pageOf(const PlanOutcome &outcome, const Sweep *sweep = nullptr);

/// Returns one bar of the step time by term; terms without time are left out.
PageBars pageStep(const planner::StepTime &time);

/// Returns a bar per stage of the memory of a device by class.
PageBars pageMemory(const std::vector<planner::MemoryUse> &stages);

/// Groups collectives by axis, phase and kind. The groups are sorted by axis,
/// and those of one axis are in order of appearance.
std::vector<PageTraffic>
pageTraffic(const std::vector<planner::LedgerEntry> &ledger,
            const planner::Mesh &mesh);

/// Adds the number and time of messages between stages, which ledgers lack.
void addSends(std::vector<PageTraffic> &traffic,
              const planner::StepResult &result);

/// Returns a timeline with every task of every stream.
PageTimeline pageTimeline(const planner::StepProblem &problem,
                          const planner::StepResult &result);

/// Returns the time of each stage by class.
PageBars pageStages(const planner::StepProblem &problem,
                    const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_PLAN_PAGE_H
