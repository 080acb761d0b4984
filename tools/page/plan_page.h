//===- plan_page.h - The page about the outcome of a search -----*- C++ -*-===//

#ifndef MTPLAN_TOOLS_PAGE_PLAN_PAGE_H
#define MTPLAN_TOOLS_PAGE_PLAN_PAGE_H

#include "tools/page/page.h"
#include "tools/pipeline.h"

namespace mtplan::tools {

/// Of an outcome that has a best plan. Its step is simulated once more, in
/// full.
Page pageOf(const PlanOutcome &outcome);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_PAGE_PLAN_PAGE_H
