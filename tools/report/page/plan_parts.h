//===- plan_parts.h - Parts of the page from the planner --------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_PLAN_PARTS_H
#define MTPLAN_TOOLS_REPORT_PAGE_PLAN_PARTS_H

#include <vector>

#include "planner/search/price/ledger.h"
#include "planner/search/price/memory_use.h"
#include "planner/simulate/step.h"
#include "tools/report/page/page.h"

namespace mtplan::tools {

/// Returns one bar; parts without time are left out.
PageBars pageStep(const planner::StepTime &time);

/// Returns a bar per stage, all of the same device.
PageBars pageMemory(const std::vector<planner::MemoryUse> &stages);

/// Groups collectives by axis, phase and kind, in order of appearance.
std::vector<PageTraffic>
pageTraffic(const std::vector<planner::LedgerEntry> &ledger,
            const planner::Mesh &mesh);

/// Adds the number and time of messages between stages, which no ledger has.
void addSends(std::vector<PageTraffic> &traffic,
              const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_PLAN_PARTS_H
