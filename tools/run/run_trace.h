//===- run_trace.h - What ran when, for Perfetto ----------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_RUN_RUN_TRACE_H
#define MTPLAN_TOOLS_RUN_RUN_TRACE_H

#include "runtime/plan/plan.h"
#include "tools/exchange/chrome_trace.h"
#include "tools/run/run_times.h"

namespace mtplan::tools {

/// A process a rank, a thread a stream of the plan; then, of what was
/// predicted, a process a stage.
Trace runTraceOf(const runtime::Plan &plan, const Traces &traces,
                 std::int64_t step, const Prediction *predicted);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_RUN_RUN_TRACE_H
