//===- run_trace.h - Measured timelines for Perfetto ------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_TRACE_H
#define MTPLAN_TOOLS_RUN_RUN_TRACE_H

#include "runtime/plan/plan.h"
#include "tools/exchange/chrome_trace.h"
#include "tools/run/run_times.h"

namespace mtplan::tools {

/// Returns a process per rank with a thread per stream of the plan, then a
/// process per stage of the prediction.
Trace runTraceOf(const runtime::Plan &plan, const Traces &traces,
                 std::int64_t step, const Prediction *predicted);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_TRACE_H
