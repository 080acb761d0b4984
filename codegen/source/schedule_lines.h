//===- schedule_lines.h - A schedule as loops -------------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
#define MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H

#include <string>
#include <vector>

#include "codegen/source/pass_schedule.h"
#include "codegen/source/stage_names.h"
#include "codegen/source/text.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Writes the calls of an entry, for each of its layers.
/// \param microBatch  the expression for the entry's micro-batch
void writeEntry(const StageNames &names, const runtime::ScheduleEntry &entry,
                const std::vector<std::string> &functions,
                const std::string &microBatch, Text &text);

/// Writes the runs of a schedule's passes as calls in loops. The loops are over
/// micro-batches or, if the schedule has groups of micro-batches, over the
/// stage's runs.
/// \param functions  the function of each pass or, if the schedule has groups,
///                   of each direction (forward, then backward)
void writeRuns(int microBatches, const PassSchedule &schedule,
               const std::vector<std::string> &functions, Text &text);

/// Returns the name of a program's function. A program that only sends or
/// receives is named after this action. Any other program keeps its name in the
/// plan, but a recomputation loses the ending ".backward".
std::string functionNameOf(const runtime::Program &program,
                           const StageNames &names);

/// Returns a sentence about a program that only sends or receives.
std::string purposeOfMessages(const runtime::Program &program,
                              const StageNames &names);

/// Returns the purpose of a program of Stage::reduce: "sums gradients over
/// ranks".
std::string purposeOfReduction(const runtime::Program &program);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_SCHEDULE_LINES_H
