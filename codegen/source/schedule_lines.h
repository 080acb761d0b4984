//===- schedule_lines.h - A schedule as loops -------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H

#include <string>
#include <vector>

#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Calls of the programs' functions: layers and micro-batches as loops. What
/// comes again and again, each time a micro-batch later, is one loop.
/// \param functions  by program
void writeSchedule(const std::vector<runtime::ScheduleEntry> &schedule,
                   const std::vector<std::string> &functions, Text &text);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
