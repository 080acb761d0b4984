//===- step_trace.h - A simulated step for Perfetto -------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_STEP_TRACE_H
#define MTPLAN_TOOLS_STEP_TRACE_H

#include "planner/simulate/step.h"
#include "tools/exchange/chrome_trace.h"
#include "tools/pipeline.h"

namespace mtplan::tools {

/// Every task: a process per stage, a thread per stream, and an arrow from what
/// one stage sends to what another does with it.
Trace traceOf(const planner::StepResult &result);

/// The best plan's step, simulated in full, as trace event JSON.
std::string traceTextOf(const PlanOutcome &outcome,
                        std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_STEP_TRACE_H
