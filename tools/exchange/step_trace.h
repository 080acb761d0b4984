//===- step_trace.h - A simulated step as a timeline ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_EXCHANGE_STEP_TRACE_H
#define MTPLAN_TOOLS_EXCHANGE_STEP_TRACE_H

#include "planner/simulate/step.h"
#include "tools/exchange/chrome_trace.h"

namespace mtplan::tools {

/// Returns every task of a step: a process per stage, a thread per stream, and
/// an arrow from each task that sends to the task of another stage that
/// receives.
Trace traceOf(const planner::StepResult &result);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_EXCHANGE_STEP_TRACE_H
