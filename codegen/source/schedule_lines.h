//===- schedule_lines.h - A schedule as loops -------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H

#include <string>
#include <vector>

#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Returns a number of layers by the constants L and pp, where it is all of
/// them or an equal part.
std::string layersText(const runtime::Plan &plan, int layers);

/// Writes calls of the programs' functions, with layers and micro-batches as
/// loops. Entries that repeat, each time a micro-batch later, become one loop.
/// \param functions  by program
/// \param inFlight   micro-batches that run forward before the first backward;
///                   0: no number has that name
void writeSchedule(const runtime::Plan &plan,
                   const std::vector<runtime::ScheduleEntry> &schedule,
                   const std::vector<std::string> &functions, Text &text,
                   int inFlight = 0);

/// Returns how many micro-batches run forward before the first backward, where
/// a loop over micro-batches says so; else 0.
int microBatchesInFlight(const runtime::Stage &stage);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
