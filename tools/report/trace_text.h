//===- trace_text.h - The best plan's step for Perfetto ---------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_TRACE_TEXT_H
#define MTPLAN_TOOLS_REPORT_TRACE_TEXT_H

#include "tools/driver/pipeline.h"

namespace mtplan::tools {

/// Simulates the best plan's step in full and writes it as trace event JSON.
std::string traceTextOf(const PlanOutcome &outcome,
                        std::vector<std::string> &errors);

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_TRACE_TEXT_H
