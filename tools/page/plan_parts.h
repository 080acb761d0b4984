//===- plan_parts.h - What the planner says of a plan, on the page -*- C++
//-*-===//

#ifndef MTPLAN_TOOLS_PAGE_PLAN_PARTS_H
#define MTPLAN_TOOLS_PAGE_PLAN_PARTS_H

#include <vector>

#include "planner/search/ledger.h"
#include "planner/simulate/step.h"
#include "tools/page/page.h"

namespace mtplan::tools {

/// One bar; what takes no time is left out.
PageBars pageStep(const planner::StepTime &time);

/// By stage, all of the same device.
PageBars pageMemory(const std::vector<planner::MemoryUse> &stages);

/// By axis, phase and kind, in the order in which they first come.
std::vector<PageTraffic>
pageTraffic(const std::vector<planner::LedgerEntry> &ledger,
            const planner::Mesh &mesh);

/// Messages from stage to stage, which are in no ledger: their number and time.
void addSends(std::vector<PageTraffic> &traffic,
              const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_PLAN_PARTS_H
